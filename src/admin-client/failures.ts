/** What can go wrong between a command and the admin API, in words for whoever typed it: what, where, what to do. */

import type { ProblemDocument } from './documents.ts';
import { printable } from './printable.ts';

/** The admin API refused the call and said why. */
export class AdminRefusal extends Error {
  override readonly name = 'AdminRefusal';
  readonly problem: ProblemDocument;

  /** `advice`: what to do, where this side knows more about it than the answer says. */
  constructor(problem: ProblemDocument, advice?: string) {
    super([describeProblem(problem), advice].filter((part) => part !== undefined).join('\n'));
    this.problem = problem;
  }
}

/** Title, detail and code; with the request's id where only the gateway's log can tell more. */
export function describeProblem({ title, detail, code, status, request_id: requestId }: ProblemDocument): string {
  const reference = status >= 500 ? `${code}, request_id ${requestId}` : code;
  return printable(`${title}: ${detail} (${reference})`);
}

/** The call never got as far as an answer of the admin API. */
export class AdminUnreachableError extends Error {
  override readonly name = 'AdminUnreachableError';
}

/** Nobody listened, so that the request cannot have been carried out. */
const NEVER_SENT: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'the host name is not known',
  EAI_AGAIN: 'the host name cannot be looked up now',
  EHOSTUNREACH: 'there is no route to the host',
  ENETUNREACH: 'there is no route to the network',
  UND_ERR_CONNECT_TIMEOUT: 'the host does not answer',
};

/** `error`: what `fetch` threw. */
export function unreachable(url: string, error: unknown, timeoutMs: number): AdminUnreachableError {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  // The Fetch standard keeps some ports from HTTP; its error has no code.
  const badPort = cause instanceof Error && cause.message === 'bad port';
  const never = badPort ? 'this port is reserved for another protocol' : NEVER_SENT[code];
  if (never !== undefined) {
    return new AdminUnreachableError(
      `cannot reach the admin API at ${url}: ${never}\n` +
        'Check that the gateway runs with an admin section in its configuration, and name its address with --admin-url.',
    );
  }
  const timedOut = error instanceof Error && error.name === 'TimeoutError';
  const reason = timedOut
    ? `no complete answer within ${timeoutMs / 1000} seconds`
    : printable(cause instanceof Error ? cause.message : String(cause));
  return new AdminUnreachableError(
    `the admin API at ${url} did not answer: ${reason}\n` +
      'Whether the call was carried out is not known: look, then repeat it. Another address is named with --admin-url.',
  );
}

/** A gateway answered, on another of its listeners. */
export function wrongListener(url: string, listener: 'ops' | 'public'): AdminUnreachableError {
  const purpose = listener === 'ops' ? 'for probes and metrics' : 'for API customers';
  return new AdminUnreachableError(
    `${url} is the ${listener} listener of a gateway (${purpose}), not its admin listener\n` +
      'Name the address of the admin listener with --admin-url: admin.host and admin.port of the configuration file.',
  );
}

/** Something answered that does not speak as the admin API does. */
export function notTheAdminApi(url: string, what: string): AdminUnreachableError {
  return new AdminUnreachableError(
    `${url} answered, but not as the admin API does: ${what}\n` +
      'Check that --admin-url names the admin listener of a gateway of this version.',
  );
}
