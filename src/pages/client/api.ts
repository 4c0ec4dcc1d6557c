/**
 * Calls the JSON API of the same origin. The session cookie authenticates, together with a binding in the storage of this
 * origin: the cookie alone, which browsers send to every port of the host, is worth nothing.
 */
import type { ProblemDocument } from '../../api/admin/responses.ts';
import type { Reply, SentRequest } from '../../api/admin/route-table.ts';
import type { ADMIN_ROUTES } from '../../api/admin/routes.ts';
import type { PORTAL_ROUTES } from '../../api/portal/portal-routes.ts';

/** What a page shows about a failed call. `code` is undefined if there was no problem document. */
export type Failure = Pick<ProblemDocument, 'title' | 'detail'> &
  Partial<Pick<ProblemDocument, 'status' | 'code' | 'request_id'>> & {
    /** The gateway or, for a read, the store did not respond. The page says so once. */
    readonly isOutage?: true;
  };

class CallError extends Error {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.title);
    this.failure = failure;
  }
}

/** Dispatched on `window` when the gateway no longer accepts the session. */
export const SESSION_ENDED = 'session-ended';

/** Dispatched on `window` when the gateway or its store stops responding, and when it responds again. */
export const OUTAGE = 'outage';

export interface Outage {
  /** `store`: the gateway responds, but not with what is in the store. */
  readonly of: 'gateway' | 'store';
  /** Wall time in ms of the last response before. */
  readonly sinceMs: number;
  /** What to read to learn whether it is over. */
  readonly path: string;
}

export let outage: Outage | undefined;
let respondedMs = Date.now();

function noteOutage(of: Outage['of'] | undefined, path: string): void {
  const was = outage;
  if (of === undefined) {
    // Without the store, some reads still succeed.
    if (was?.of === 'store' && was.path !== path) return;
    respondedMs = Date.now();
    outage = undefined;
  } else if (was?.of !== of) {
    outage = { of, sinceMs: respondedMs, path: of === 'store' ? path : SESSION_PATH };
  }
  if (was !== outage) window.dispatchEvent(new Event(OUTAGE));
}

/** Reads are small, so a gateway that takes longer does not respond. */
const READ_TIMEOUT_MS = 15_000;

/** The console calls the admin API, the portal its own. */
type Routes = typeof ADMIN_ROUTES & typeof PORTAL_ROUTES;
type Endpoint = keyof Routes;
export type ReplyOf<Each extends Endpoint> = Reply<Routes, Each>;

type Sent<Part> = Part extends string ? string : { readonly [Name in keyof Part]?: unknown };
/** As in the table of routes. The values of query and body come from addresses and forms: the gateway checks them. */
export type RequestOf<Each extends Endpoint, Checked = SentRequest<Routes, Each>> = {
  readonly [Part in keyof Checked]: Part extends 'query' | 'body' ? Sent<NonNullable<Checked[Part]>> : Checked[Part];
};

/** The path and query of a request, with the type of the reply. */
export type Address<Document> = string & { readonly reply?: Document };

export function address<Each extends Endpoint>(endpoint: Each, request: RequestOf<Each>): Address<ReplyOf<Each>> {
  const { query = {}, ...parameters } = request as { query?: Query; [name: string]: unknown };
  const path = endpoint.slice(endpoint.indexOf('/'));
  return pathWith(
    path.replace(/:(\w+)/g, (_, name) => encodeURIComponent(String(parameters[name]))),
    query,
  );
}

/** @throws CallError */
export function call<Each extends Endpoint>(endpoint: Each, request: RequestOf<Each>): Promise<ReplyOf<Each>> {
  const [method = ''] = endpoint.split(' ');
  return send(method, address(endpoint, request), (request as { body?: object | string }).body);
}

/** `body`: an object is sent as JSON, a text as YAML. @throws CallError, or the reason of an aborted signal. */
export async function send<T>(method: string, path: string, body?: object | string, signal?: AbortSignal): Promise<T> {
  const isYaml = typeof body === 'string';
  const headers = new Headers();
  const timeouts = method === 'GET' ? [AbortSignal.timeout(READ_TIMEOUT_MS)] : [];
  const init: RequestInit = { method, headers, signal: AbortSignal.any([...(signal ? [signal] : []), ...timeouts]) };
  const binding = ownBinding ?? localStorage.getItem(BINDING);
  if (binding !== null) headers.set('X-Tollgate-Session-Binding', binding);
  // The gateway requires a content type for changes, because cross-site forms cannot send these.
  if (method !== 'GET') headers.set('Content-Type', isYaml ? 'application/yaml' : 'application/json');
  if (body !== undefined) init.body = isYaml ? body : JSON.stringify(body);
  // Not with mode 'same-origin': together with Referrer-Policy: no-referrer, browsers would send `Origin: null`.
  const response = await fetch(path, init).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    const detail = 'No response from the gateway. It may be restarting, or the network is down.';
    noteOutage('gateway', path);
    throw new CallError({ title: 'Gateway unreachable', detail, isOutage: true });
  });
  if (response.ok) {
    noteOutage(undefined, path);
    return response.status === 204 ? (undefined as T) : ((await response.json()) as T);
  }
  const failure = await failureOf(response, method);
  noteOutage(failure.isOutage && (failure.code === undefined ? 'gateway' : 'store'), path);
  if (response.status === 401 && path !== SESSION_PATH) window.dispatchEvent(new Event(SESSION_ENDED));
  throw new CallError(failure);
}

/** The pages of a site are below one path, such as /console. The bare address has a page on the portal alone. */
export const [ROOT = '/portal'] = /^\/[^/]+/.exec(location.pathname) ?? [];
export const SESSION_PATH = `${ROOT}/session`;
/** All tabs of the origin share the cookie, so they share the binding too. */
const BINDING = 'tollgate-session-binding';

/** Of the session to which this tab keeps; undefined: it shares that of all tabs. */
let ownBinding: string | undefined;

/**
 * Ends this tab's part in the session of all tabs: if another tab opens a session, calls of this one fail, and never act
 * in the other session.
 */
export function keepToSession(): void {
  ownBinding = localStorage.getItem(BINDING) ?? undefined;
}

/** Exchanges a secret for a session. @throws CallError */
export async function startSession<Session>(secret: object): Promise<Session> {
  const { binding, ...session } = await send<Session & { binding: string }>('POST', SESSION_PATH, secret);
  localStorage.setItem(BINDING, binding);
  return session as Session;
}

/** Resolves to undefined if the gateway accepts neither the session nor the secret of a call. */
export function sessionOf<Session>(called: Promise<Session>): Promise<Session | undefined> {
  return called.catch((error: unknown) => {
    if (failureFrom(error).status === 401) return undefined;
    throw error;
  });
}

/** @throws CallError */
export async function endSession(): Promise<void> {
  await send('DELETE', SESSION_PATH);
  localStorage.removeItem(BINDING);
}

async function failureOf(response: Response, method: string): Promise<Failure> {
  try {
    const problem: ProblemDocument = await response.json();
    // A change that failed has its own message.
    const isOutage = method === 'GET' && problem.code === 'store_unavailable';
    return { ...problem, ...(isOutage && { isOutage }) };
  } catch {
    return {
      title: `Status ${response.status}`,
      detail: 'The response is not from the gateway. Is a proxy in between?',
      status: response.status,
      ...(response.status >= 502 && { isOutage: true }),
    };
  }
}

export function failureFrom(error: unknown): Failure {
  if (error instanceof CallError) return error.failure;
  return { title: 'The page failed', detail: error instanceof Error ? error.message : String(error) };
}

type Query = Readonly<Record<string, string | number | undefined>>;

/** Returns a path with these parameters added to its query. Undefined and empty ones are left out. */
export function pathWith(path: string, query: Query): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  if (given.length === 0) return path;
  const parameters = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  return `${path}${path.includes('?') ? '&' : '?'}${parameters}`;
}

export interface Page<T> {
  readonly items: readonly T[];
  readonly next_cursor: string | null;
}
