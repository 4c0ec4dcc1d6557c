import { type RequestHandler, type Response, Router } from 'express';
import { type CheckedRequest, type Reply, type RouteTable, routeOf } from '../../api/admin/route-table.ts';
import type { Clock } from '../../base/clock.ts';
import { sendProblem } from '../../http/problems/document.ts';
import { documentsOf, type SourceOf } from './document-of.ts';
import { jsonBody, parseBody, parseQuery, yamlBody } from './parse-request.ts';
import { factsOf } from './response-locals.ts';
import { withWebhookOrigins } from './webhook-origins.ts';

/** Handlers by path and method. Express serves HEAD with the handler of GET. */
export type PathHandlers = Readonly<
  Record<
    string,
    Partial<Record<'get' | 'post' | 'put' | 'patch' | 'delete', RequestHandler | readonly RequestHandler[]>>
  >
>;

/** A reply as text, in place of the document of its route. */
export class TextReply {
  readonly contentType: string;
  readonly text: string;

  constructor(contentType: string, text: string) {
    this.contentType = contentType;
    this.text = text;
  }
}

/**
 * Handlers of the routes of a table. They return what the document of the reply is made of, or its text. A reply that is
 * always text, they write themselves.
 */
export type HandlersOf<Table> = {
  readonly [Each in keyof Table]: (
    request: CheckedRequest<Table, Each>,
    res: Response,
  ) => Source<Table, Each> | Promise<Source<Table, Each>>;
};
type Source<Table, Each extends keyof Table> = SourceOf<Reply<Table, Each>> | TextReply;

/**
 * Returns handlers that check query and body and send the reply, as the table of routes says. `guardsOf`: what must let a
 * request pass before its body is read.
 */
export function bindHandlers<Table extends RouteTable>(
  table: Table,
  handlers: HandlersOf<Table>,
  { planNames, clock }: { readonly planNames: ReadonlySet<string>; readonly clock: Clock },
  guardsOf: (endpoint: keyof Table) => readonly RequestHandler[] = () => [],
): PathHandlers {
  const bound: Record<string, Record<string, RequestHandler[]>> = {};
  for (const [endpoint, handler] of Object.entries<HandlersOf<Table>[keyof Table]>(handlers)) {
    const [method = '', path = ''] = endpoint.split(' ');
    const { query, body, status, reply } = routeOf(table, endpoint as keyof Table & string);
    const isYaml = body === 'yaml';
    let schema: ReturnType<Exclude<typeof body, 'yaml' | undefined>> | undefined;
    let toDocument: ReturnType<typeof documentsOf> | undefined;
    const handle: RequestHandler = async (req, res) => {
      // With the first request: a start and each reload bind dozens of routes, and most are never called.
      if (!isYaml) schema ??= body?.({ plans: planNames, nowMs: () => clock.nowMs() });
      if (typeof reply === 'object') toDocument ??= documentsOf(reply);
      const request = {
        ...req.params,
        ...(query && { query: parseQuery(query, req) }),
        ...(schema && { body: parseBody(schema, req.body) }),
        ...(isYaml && { body: req.body ?? Buffer.alloc(0) }),
      };
      // The key of a handler is the endpoint whose request it takes.
      const source = await handler(request as never, res);
      if (reply === undefined) res.status(204).end();
      else if (source instanceof TextReply) res.type(source.contentType).send(source.text);
      else if (toDocument) {
        const document = toDocument(source);
        res.status(status ?? 200).json(factsOf(res).actor?.mayWrite ? document : withWebhookOrigins(document));
      }
    };
    const before = [...guardsOf(endpoint as keyof Table), isYaml ? yamlBody : jsonBody()];
    bound[path] = { ...bound[path], [method.toLowerCase()]: [...before, handle] };
  }
  return bound;
}

/** Returns a router that responds with 405 to the other methods of each path (RFC 9110 §15.5.6). */
export function createRouter(routes: PathHandlers): Router {
  const router = Router({ caseSensitive: true, strict: true });
  for (const [path, handlers] of Object.entries(routes)) {
    const route = router.route(path);
    for (const [method, handler] of Object.entries(handlers)) route[method as keyof typeof handlers]([handler].flat());
    const methods = Object.keys(handlers).map((method) => (method === 'get' ? 'GET, HEAD' : method.toUpperCase()));
    const allow = methods.join(', ');
    route.all((_req, res) => {
      sendProblem(res, { code: 'method_not_allowed', detail: `This path has ${allow}.`, headers: ['Allow', allow] });
    });
  }
  return router;
}
