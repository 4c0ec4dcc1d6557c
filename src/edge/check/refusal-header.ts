/**
 * A refusal in one header. nginx passes on neither status nor body of a subrequest, but it can keep one of its headers,
 * and fetch what that holds from the gateway as its response.
 */
import { type Problem, problemResponse } from '../../http/problems/document.ts';
import { PROBLEMS } from '../../http/problems/table.ts';

/** With the other headers, less than the 4 KiB that nginx reads of a response head by default. */
const MAX_LENGTH = 3 * 1024;
/** Headers of a refusal that a client gets, whatever the form. */
const FOR_CLIENT =
  /^(?:x-request-id|www-authenticate|retry-after|allow|deprecation|sunset|link|(?:x-)?ratelimit(?:-[a-z]+)?)$/i;

/** Keeps the headers (name, value, …) that a client needs, without those about the message that carries them. */
export function fieldsForClient(headers: readonly string[]): string[] {
  return headers.filter((_, i) => FOR_CLIENT.test(headers[i - (i % 2)] ?? ''));
}

/** Returns the header with a refusal (name, value). A document that is too long has no `detail` of this request. */
export function refusalHeader(problem: Problem, requestId: string, documentationUrl: string | undefined): string[] {
  for (const detail of [problem.detail, PROBLEMS[problem.code].title]) {
    const { status, headers, body } = problemResponse({ ...problem, detail }, requestId, documentationUrl);
    const json = `{"status":${status},"fields":${JSON.stringify(fieldsForClient(headers))},"document":${body}}`;
    const value = Buffer.from(json).toString('base64url');
    if (value.length <= MAX_LENGTH) return ['X-Tollgate-Refusal', value];
  }
  return [];
}

/** Returns the response that {@link refusalHeader} holds. Undefined if it is none of a known problem. */
export function readRefusal(value = '') {
  if (value.length > MAX_LENGTH) return undefined;
  try {
    const { status, fields, document } = JSON.parse(Buffer.from(value, 'base64url').toString()) ?? {};
    const code: unknown = document?.code;
    if (typeof code !== 'string' || !Object.hasOwn(PROBLEMS, code)) return undefined;
    const isKnown = status === PROBLEMS[code as keyof typeof PROBLEMS].status && document.status === status;
    if (
      !isKnown ||
      !Array.isArray(fields) ||
      fields.length % 2 === 1 ||
      !fields.every((field) => typeof field === 'string' && VALUE.test(field))
    ) {
      return undefined;
    }
    const body = JSON.stringify(document);
    const length = String(Buffer.byteLength(body));
    const own = ['Content-Type', 'application/problem+json', 'Content-Length', length, 'Cache-Control', 'no-store'];
    return { status: status as number, headers: [...own, ...fieldsForClient(fields)], body };
  } catch {
    return undefined;
  }
}

const VALUE = /^[\x20-\x7e]*$/;
