import { randomUUID } from 'node:crypto';
import { PROBLEMS, type ProblemCode, problemType } from './table.ts';

/** A refusal as an RFC 9457 document, with the header fields that belong to its code. */
export interface Problem {
  readonly code: ProblemCode;
  /** What happened this time and what to do, in a sentence or two for the caller; never an inner message. */
  readonly detail: string;
  /** Flat `[name, value, …]`. */
  readonly headers?: readonly string[];
  /** Members beyond the usual ones, such as `violated-policies`. */
  readonly members?: Readonly<Record<string, unknown>>;
}

export const PROBLEM_CONTENT_TYPE = 'application/problem+json';

export function problemStatus(code: ProblemCode): number {
  return PROBLEMS[code].status;
}

/**
 * Returns the body's text. `status` is always the real one (RFC 9457 §3.1.2). `documentationUrl` is a page for people, in
 * which `{code}` stands for the problem's code.
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

/** Header fields of every answer that carries a problem document, flat. RFC 9111 §5.2.2.5: never stored. */
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
