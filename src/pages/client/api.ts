/**
 * Calls the JSON API of the same origin. The session cookie authenticates, together with a binding in the storage of this
 * origin: the cookie alone, which browsers send to every port of the host, is worth nothing.
 */
import type { ProblemDocument } from '../../admin-api/responses.ts';

/** What a page shows about a failed call. `code` is undefined if there was no problem document. */
export type Failure = Pick<ProblemDocument, 'title' | 'detail'> &
  Partial<Pick<ProblemDocument, 'status' | 'code' | 'request_id'>> & {
    /** The gateway or, for a read, the store did not respond. The page says so once. */
    readonly isOutage?: true;
  };

export class CallError extends Error {
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

export interface CallOptions {
  readonly json?: unknown;
  /** A config file, sent instead of JSON. */
  readonly yaml?: string;
  readonly signal?: AbortSignal;
}

/** @throws CallError, or the reason of an aborted signal. */
export async function call<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
  const { json, yaml, signal } = options;
  const headers = new Headers();
  const timeouts = method === 'GET' ? [AbortSignal.timeout(READ_TIMEOUT_MS)] : [];
  const init: RequestInit = { method, headers, signal: AbortSignal.any([...(signal ? [signal] : []), ...timeouts]) };
  const binding = ownBinding ?? localStorage.getItem(BINDING);
  if (binding !== null) headers.set('X-Tollgate-Session-Binding', binding);
  // The gateway requires a content type for changes, because cross-site forms cannot send these.
  if (method !== 'GET') headers.set('Content-Type', yaml === undefined ? 'application/json' : 'application/yaml');
  if (yaml !== undefined) init.body = yaml;
  else if (json !== undefined) init.body = JSON.stringify(json);
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

/** The pages of a site are below one path, such as /console. */
export const [ROOT = ''] = /^\/[^/]*/.exec(location.pathname) ?? [];
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
  const { binding, ...session } = await call<Session & { binding: string }>('POST', SESSION_PATH, { json: secret });
  localStorage.setItem(BINDING, binding);
  return session as Session;
}

/** @throws CallError */
export async function endSession(): Promise<void> {
  await call('DELETE', SESSION_PATH);
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

/** Returns a path with its query. Undefined and empty parameters are left out. */
export function pathWith(path: string, query: Readonly<Record<string, string | number | undefined>>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const parameters = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  return parameters.size === 0 ? path : `${path}?${parameters}`;
}

export interface Page<T> {
  readonly items: readonly T[];
  readonly next_cursor: string | null;
}
