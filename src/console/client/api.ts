/** Calls the admin API of the same origin. The session cookie authenticates, so no page holds a secret. */
import type { ProblemDocument } from '../../admin-api/responses.ts';

/** What a page shows about a failed call. `code` is undefined if there was no problem document. */
export type Failure = Pick<ProblemDocument, 'title' | 'detail'> &
  Partial<Pick<ProblemDocument, 'status' | 'code' | 'request_id'>>;

export class CallError extends Error {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.title);
    this.failure = failure;
  }
}

/** Dispatched on `window` when the gateway no longer accepts the session. */
export const SESSION_ENDED = 'session-ended';

export interface CallOptions {
  readonly json?: unknown;
  /** A config file, sent instead of JSON. */
  readonly yaml?: string;
  readonly signal?: AbortSignal;
}

/** @throws CallError, or the reason of an aborted signal. */
export async function call<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
  const { json, yaml, signal } = options;
  const init: RequestInit = { method, ...(signal && { signal }) };
  // The gateway requires a content type for changes, because cross-site forms cannot send these.
  if (method !== 'GET') init.headers = { 'Content-Type': yaml === undefined ? 'application/json' : 'application/yaml' };
  if (yaml !== undefined) init.body = yaml;
  else if (json !== undefined) init.body = JSON.stringify(json);
  const response = await fetch(path, init).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    const detail = 'No response from the gateway. It may be restarting, or the network is down.';
    throw new CallError({ title: 'Gateway unreachable', detail });
  });
  if (response.ok) return response.status === 204 ? (undefined as T) : ((await response.json()) as T);
  const failure = await failureOf(response);
  if (response.status === 401 && path !== SESSION_PATH) window.dispatchEvent(new Event(SESSION_ENDED));
  throw new CallError(failure);
}

export const SESSION_PATH = '/console/session';

async function failureOf(response: Response): Promise<Failure> {
  try {
    return (await response.json()) as ProblemDocument;
  } catch {
    return {
      title: `Status ${response.status}`,
      detail: 'The response is not from the gateway. Is a proxy in between?',
      status: response.status,
    };
  }
}

export function failureFrom(error: unknown): Failure {
  if (error instanceof CallError) return error.failure;
  return { title: 'The console failed', detail: error instanceof Error ? error.message : String(error) };
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
