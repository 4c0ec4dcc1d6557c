/** Errors of calls to the admin API. Messages tell the user of a command what failed, where, and what to do. */
import type { ProblemDocument } from '../admin/responses.ts';
import { printable } from './printable.ts';

/** The admin API refused the call and said why. */
export class AdminRefusal extends Error {
  override readonly name = 'AdminRefusal';
  readonly problem: ProblemDocument;

  /** `advice`: what to do, if the client knows more about that than the response says. */
  constructor(problem: ProblemDocument, advice?: string) {
    super([describeProblem(problem), advice].filter((part) => part !== undefined).join('\n'));
    this.problem = problem;
  }
}

/** Returns title, detail and code; for a 5xx also the request's id, because only the gateway's log has more. */
export function describeProblem({ title, detail, code, status, request_id: requestId }: ProblemDocument): string {
  const reference = status >= 500 ? `${code}, request_id ${requestId}` : code;
  return printable(`${title}: ${detail} (${reference})`);
}

/** No connection was made, so the request cannot have been processed. */
const NEVER_SENT: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens on it',
  ENOTFOUND: 'the host name is unknown',
  EAI_AGAIN: 'the host name cannot be looked up now',
  EHOSTUNREACH: 'there is no route to the host',
  ENETUNREACH: 'there is no route to the network',
  UND_ERR_CONNECT_TIMEOUT: 'the host does not respond',
};

/** Returns the error for a failed `fetch`. `error`: what `fetch` threw. */
export function unreachable(url: string, error: unknown, timeoutMs: number): Error {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  // The Fetch standard blocks some ports; its error has no code.
  const badPort = cause instanceof Error && cause.message === 'bad port';
  const never = badPort ? 'this port is reserved for another protocol' : NEVER_SENT[code];
  if (never !== undefined) {
    return new Error(
      `cannot reach the admin API at ${url}: ${never}\n` +
        'Check that the gateway runs with an admin section in its configuration, and set its address with --admin-url.',
    );
  }
  const timedOut = error instanceof Error && error.name === 'TimeoutError';
  const reason = timedOut
    ? `no complete response within ${timeoutMs / 1000} seconds`
    : printable(cause instanceof Error ? cause.message : String(cause));
  return new Error(
    `the admin API at ${url} did not respond: ${reason}\n` +
      'It is unknown whether the call took effect: check before repeating it. --admin-url sets another address.',
  );
}

/** Returns the error for a response that does not have the form of the admin API's. */
export function notTheAdminApi(url: string, what: string): Error {
  return new Error(
    `${url} responded, but not like the admin API: ${what}\n` +
      'Check that --admin-url names the admin listener of a gateway of this version.',
  );
}
