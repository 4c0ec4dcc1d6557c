/** HTTP client of the admin API, for Tollgate's own programs. Validates every response against a schema. */
import { z } from 'zod';
import { CUSTOMER_ID, PROBLEM, type SessionDocument, TIME } from '../admin/responses.ts';
import { routeOf } from '../admin/route-table.ts';
import { ADMIN_ROUTES, type Endpoint, type ListEndpoint, type ReplyOf, type RequestOf } from '../admin/routes.ts';
import { AdminRefusal, notTheAdminApi, unreachable } from './failures.ts';

interface AdminClientSettings {
  /** Origin of the admin listener, such as `http://127.0.0.1:8082`. */
  readonly url: string;
  /** The admin token or a JWT. Printable ASCII, because it is sent in a header. */
  readonly token: string;
  /** Where the token comes from, for error messages. */
  readonly tokenSource: string;
  /** Timeout of one call, including its response. */
  readonly timeoutMs?: number;
}

/** A request may be omitted if all its members may. */
type Arguments<Request> = Record<never, never> extends Request ? [request?: Request] : [request: Request];

type ItemOf<Each extends ListEndpoint> = ReplyOf<Each> extends { items: (infer Item)[] } ? Item : never;

/** `maxItems`: without it, all items are read. */
type ListRequestOf<Each extends ListEndpoint> = RequestOf<Each> & { readonly maxItems?: number | undefined };

interface AnyRequest {
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: object | string;
  readonly maxItems?: number;
  /** Parameters of the path. */
  readonly [name: string]: unknown;
}

/** The routes that reply with lines. */
type ExportEndpoint = 'GET /admin/v1/usage/export' | 'GET /admin/v1/usage/periods';

/** One line of the usage export. */
const CLOSED_HOUR = z.object({
  customer: CUSTOMER_ID,
  start: TIME,
  requests: z.int().min(0),
  units: z.int().min(0).optional(),
});

export interface ExportPage {
  /** Whole lines. */
  readonly text: string;
  /** The cursor of the next page; undefined on the last page. */
  readonly next: string | undefined;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const CUSTOMER_PATH = /^\/admin\/v1\/customers\/([^/?]+)/;
/** The largest page size that the admin API allows. */
const MAX_PAGE_ITEMS = 1000;

/**
 * All methods reject with {@link AdminRefusal} for a problem document, and with another error if the admin API did not
 * respond at all.
 */
export class AdminClient {
  readonly #settings: Required<AdminClientSettings>;

  constructor(settings: AdminClientSettings) {
    this.#settings = { timeoutMs: DEFAULT_TIMEOUT_MS, ...settings };
  }

  /** Resolves to the document of the reply. */
  async call<Each extends Endpoint>(endpoint: Each, ...[request]: Arguments<RequestOf<Each>>): Promise<ReplyOf<Each>> {
    return (await this.#call(endpoint, request ?? {})) as ReplyOf<Each>;
  }

  /** Resolves to whether the token may write. Documents have the origins alone of webhook URLs if it may not. */
  async mayWrite(): Promise<boolean> {
    const { text } = await this.#send('GET', '/console/session');
    return (parseJson(text) as Partial<SessionDocument> | undefined)?.scope === 'write';
  }

  /** Yields the pages of an export. */
  async *exportUsage<Each extends ExportEndpoint>(
    endpoint: Each,
    request: RequestOf<Each>,
  ): AsyncGenerator<ExportPage> {
    const [, template = ''] = endpoint.split(' ');
    const { query = {} } = request as AnyRequest;
    let { cursor } = query;
    do {
      const { text, link } = await this.#send('GET', pathOf(template, { query: { ...query, cursor } }));
      const path = /^<(\/[^>]*)>; rel="next"$/.exec(link ?? '')?.[1];
      cursor =
        path === undefined ? undefined : (new URL(path, this.#settings.url).searchParams.get('cursor') ?? undefined);
      yield { text, next: cursor };
    } while (cursor !== undefined);
  }

  /** Yields the closed hours of an export. */
  async *closedHours(
    given: RequestOf<'GET /admin/v1/usage/export'>['query'],
  ): AsyncGenerator<z.output<typeof CLOSED_HOUR>> {
    const query = { ...given, format: 'jsonl' } as const;
    for await (const { text } of this.exportUsage('GET /admin/v1/usage/export', { query })) {
      for (const line of text.split('\n')) if (line !== '') yield CLOSED_HOUR.parse(JSON.parse(line));
    }
  }

  /**
   * Returns all items of a list, or its first `maxItems` items. An item that moves to a later page during the calls is
   * listed once.
   */
  async list<Each extends ListEndpoint>(
    endpoint: Each,
    ...request: Arguments<ListRequestOf<Each>>
  ): Promise<ItemOf<Each>[]> {
    const found = new Map<string, ItemOf<Each>>();
    for await (const items of this.pages(endpoint, ...request)) {
      for (const item of items) {
        const { id, customer, ends_at: end } = item as { readonly id?: string; customer: string; ends_at?: string };
        // A day and a month of a customer can begin together.
        const key = `${id ?? customer} ${end}`;
        if (!found.has(key)) found.set(key, item);
      }
    }
    return [...found.values()];
  }

  /** Like {@link list}, but yields each page as it arrives. Only for lists whose items do not move between pages. */
  async *pages<Each extends ListEndpoint>(
    endpoint: Each,
    ...[request]: Arguments<ListRequestOf<Each>>
  ): AsyncGenerator<ItemOf<Each>[]> {
    const { maxItems = Number.POSITIVE_INFINITY, ...given } = (request ?? {}) as AnyRequest;
    let left = maxItems;
    let cursor: string | undefined;
    do {
      const limit = String(Math.min(MAX_PAGE_ITEMS, left));
      const page = await this.#call(endpoint, { ...given, query: { ...given.query, limit, cursor } });
      const { items, next_cursor: next } = page as { items: ItemOf<Each>[]; next_cursor: string | null };
      yield items;
      left -= items.length;
      cursor = next ?? undefined;
    } while (cursor !== undefined && left > 0);
  }

  async #call(endpoint: Endpoint, request: AnyRequest): Promise<unknown> {
    const [method = '', template = ''] = endpoint.split(' ');
    const { reply } = routeOf(ADMIN_ROUTES, endpoint);
    const { status, text } = await this.#send(method, pathOf(template, request), request.body);
    if (reply === undefined || reply === 'text') return undefined;
    const document = parseJson(text);
    const checked = reply.safeParse(document);
    if (!checked.success) throw notTheAdminApi(this.#settings.url, describeIssues(status, checked.error));
    // The schemas only check, so this returns the response itself, with its members in their original order.
    return document;
  }

  /** `body`: an object is sent as JSON, a text as YAML. */
  async #send(
    method: string,
    path: string,
    body?: object | string,
  ): Promise<{ status: number; text: string; link: string | null }> {
    const { url, token, timeoutMs } = this.#settings;
    let response: Response;
    let text: string;
    try {
      response = await fetch(url + path, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          accept: 'application/json, application/problem+json',
          ...(body !== undefined && { 'content-type': `application/${typeof body === 'string' ? 'yaml' : 'json'}` }),
        },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
        // The admin API never redirects, and the token must be sent to this address only.
        redirect: 'manual',
        signal: AbortSignal.timeout(timeoutMs),
      });
      text = await response.text();
    } catch (error) {
      throw unreachable(url, error, timeoutMs);
    }
    if (!response.ok) throw this.#refusal(path, response.status, text);
    return { status: response.status, text, link: response.headers.get('link') };
  }

  #refusal(path: string, status: number, text: string): Error {
    const { url, tokenSource } = this.#settings;
    const problem = PROBLEM.safeParse(parseJson(text));
    if (!problem.success) return notTheAdminApi(url, `status ${status} without a problem document`);
    // The admin API does not repeat ids, which may be keys by mistake. The user of a command typed this one.
    const customer = decodeURIComponent(CUSTOMER_PATH.exec(path)?.[1] ?? 'with this id');
    problem.data.detail = problem.data.detail.replace(
      'There is no customer with this id',
      `There is no customer ${customer}`,
    );
    if (problem.data.code !== 'unauthorized') return new AdminRefusal(problem.data);
    return new AdminRefusal(
      problem.data,
      `The token was taken from ${tokenSource}. It must be admin.token of the gateway at ${url}, or a JWT that it accepts.`,
    );
  }
}

/** Returns the path with its parameters, each encoded as one segment, and the query without undefined parameters. */
function pathOf(template: string, { query = {}, ...parameters }: AnyRequest): string {
  const path = template.replace(/:(\w+)/g, (_, name) => encodeSegment(String(parameters[name])));
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
}

/** @throws RangeError for text that no encoding can make one segment: the URL would name another resource. */
function encodeSegment(segment: string): string {
  if (segment === '' || segment === '.' || segment === '..') throw new RangeError(`"${segment}" cannot be an id`);
  return encodeURIComponent(segment);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function describeIssues(status: number, error: z.ZodError): string {
  const places = error.issues.map(({ path }) => path.join('.') || 'the body');
  return `status ${status}, but not the document expected (${[...new Set(places)].slice(0, 3).join(', ')})`;
}
