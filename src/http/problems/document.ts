import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { isSecurityHeader } from './security-headers.ts';
import { PROBLEMS, type ProblemCode, type ProblemEntry } from './table.ts';

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

/**
 * Returns the response of a problem, with flat headers. `status` in the body equals the response's (RFC 9457 §3.1.2).
 * Caches must not store it (RFC 9111 §5.2.2.5). `documentationUrl` is a page for people; `{code}` in it is replaced.
 */
export function problemResponse(
  { code, detail, headers = [], members }: Problem,
  requestId: string,
  documentationUrl?: string,
) {
  const { status, title } = PROBLEMS[code];
  const body = JSON.stringify({
    type: problemType(code),
    title,
    status,
    detail,
    instance: `urn:uuid:${randomUUID()}`,
    request_id: requestId,
    code,
    documentation_url: documentationUrl?.replaceAll('{code}', code),
    ...members,
  });
  return {
    status,
    headers: [
      'X-Request-Id',
      requestId,
      'Content-Type',
      'application/problem+json',
      'Content-Length',
      String(Buffer.byteLength(body)),
      'Cache-Control',
      'no-store',
      ...headers,
    ],
    body,
  };
}

/** Returns the `type` member: the type that a draft requests of IANA if there is one, else a URN built from the code. */
function problemType(code: ProblemCode): string {
  const { requestedType }: ProblemEntry = PROBLEMS[code];
  if (requestedType !== undefined) return `https://iana.org/assignments/http-problem-types#${requestedType}`;
  return `urn:tollgate:problem:${code.replaceAll('_', '-')}`;
}

/**
 * Sends a problem document as the complete response, without the body for HEAD. Of the headers set so far only the
 * security headers remain: the others describe another response. Returns the request id in the document.
 */
export function sendProblem(res: ServerResponse, problem: Problem, requestId: string = randomUUID()): string {
  const { status, headers, body } = problemResponse(problem, requestId);
  for (const name of res.getHeaderNames()) if (!isSecurityHeader(name)) res.removeHeader(name);
  res.writeHead(status, headers);
  res.end(res.req.method === 'HEAD' ? undefined : body);
  return requestId;
}
