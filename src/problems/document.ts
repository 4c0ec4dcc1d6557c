import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { PROBLEMS, type ProblemCode, problemType } from './table.ts';

/** A refusal: the variable parts of its RFC 9457 document, and the response headers that belong to its code. */
export interface Problem {
  readonly code: ProblemCode;
  /** What happened this time and what to do, in a sentence or two for the client; never an internal message. */
  readonly detail: string;
  /** Flat `[name, value, …]`. */
  readonly headers?: readonly string[];
  /** Extension members, such as `violated-policies`. */
  readonly members?: Readonly<Record<string, unknown>>;
}

export const PROBLEM_CONTENT_TYPE = 'application/problem+json';

export function problemStatus(code: ProblemCode): number {
  return PROBLEMS[code].status;
}

/**
 * Returns the response body. Its `status` always equals the response's (RFC 9457 §3.1.2). `documentationUrl` is a page
 * for people; `{code}` in it is replaced by the problem's code.
 */
export function problemBody(problem: Problem, requestId: string, documentationUrl?: string): string {
  return JSON.stringify({
    type: problemType(problem.code),
    title: PROBLEMS[problem.code].title,
    status: problemStatus(problem.code),
    detail: problem.detail,
    instance: `urn:uuid:${randomUUID()}`,
    request_id: requestId,
    code: problem.code,
    documentation_url: documentationUrl?.replaceAll('{code}', problem.code),
    ...problem.members,
  });
}

/** Returns the headers of a problem response, flat. Caches must not store it (RFC 9111 §5.2.2.5). */
export function problemHeaders(problem: Problem, body: string): string[] {
  return [
    'Content-Type',
    PROBLEM_CONTENT_TYPE,
    'Content-Length',
    String(Buffer.byteLength(body)),
    'Cache-Control',
    'no-store',
    ...(problem.headers ?? []),
  ];
}

/** Sends a problem document as the complete response, without the body for HEAD. Returns the request id in it. */
export function sendProblem(res: ServerResponse, problem: Problem, requestId: string = randomUUID()): string {
  const body = problemBody(problem, requestId);
  for (const name of res.getHeaderNames()) res.removeHeader(name);
  res.writeHead(problemStatus(problem.code), ['X-Request-Id', requestId, ...problemHeaders(problem, body)]);
  res.end(res.req.method === 'HEAD' ? undefined : body);
  return requestId;
}
