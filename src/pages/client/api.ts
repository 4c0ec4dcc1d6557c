/**
 * Calls the JSON API of the same origin. The session cookie authenticates, together with a binding in the storage of this
 * origin: the cookie alone, which browsers send to every port of the host, is worth nothing.
 */
import type { ProblemDocument } from '../../admin-api/responses.ts';

/** What a page shows about a failed call. `code` is undefined if there was no problem document. */
export type Failure = Pick<ProblemDocument, 'title' | 'detail'> &
  Partial<Pick<ProblemDocument, 'status' | 'code' | 'request_id'>> & {
    /** The gateway did not respond. */
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

/** Dispatched on `window` when the gateway stops responding, and when it responds again. */
export const OUTAGE = 'outage';

/** Wall time in ms of the last response before the outage; undefined without one. */
export let outageSinceMs: number | undefined;
let respondedMs = Date.now();

function noteOutage(isOutage: boolean): void {
  const was = outageSinceMs;
  if (!isOutage) respondedMs = Date.now();
  outageSinceMs = isOutage ? respondedMs : undefined;
  if (was !== outageSinceMs) window.dispatchEvent(new Event(OUTAGE));
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
    noteOutage(true);
    throw new CallError({ title: 'Gateway unreachable', detail, isOutage: true });
  });
  if (response.ok) {
    noteOutage(false);
    return response.status === 204 ? (undefined as T) : ((await response.json()) as T);
  }
  const failure = await failureOf(response);
  noteOutage(failure.isOutage ?? false);
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

async function failureOf(response: Response): Promise<Failure> {
  try {
    return (await response.json()) as ProblemDocument;
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
