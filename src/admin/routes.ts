import { type RequestHandler, Router } from 'express';
import { sendProblem } from '../problems/document.ts';

type Handler = RequestHandler<{ id: string; keyId: string }>;

/** Handlers by path and method. Express serves HEAD with the handler of GET. */
export type Routes = Readonly<
  Record<string, Partial<Record<'get' | 'post' | 'patch' | 'delete', Handler | readonly Handler[]>>>
>;

/** Returns a router that responds with 405 to the other methods of each path (RFC 9110 §15.5.6). */
export function createRouter(routes: Routes): Router {
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
