import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import type { Problem } from '../../http/problems/document.ts';

interface CheckBody {
  readonly key: string;
  readonly method?: string | undefined;
  readonly path?: string | undefined;
  readonly address?: string | undefined;
  /** Decides without using, counting or noting anything. */
  readonly isDryRun: boolean;
}

const JSON_UTF8 = /^application\/json\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?$/i;
/** The members, what each must be, and whether a value is that. */
const MEMBERS: Readonly<Record<string, readonly [type: string, isValid: (value: unknown) => boolean]>> = {
  key: ['text', isText],
  method: ['a method', (value) => isText(value) && isMethod(value)],
  path: ['text that begins with a slash', (value) => isText(value) && value.startsWith('/')],
  address: ['an IP address', (value) => isText(value) && isIP(value) !== 0],
  dry_run: ['true or false', (value) => typeof value === 'boolean'],
};

/** Returns whether a text can be a method (RFC 9110 §5.6.2). It is logged, so it must not be long. */
export function isMethod(text: string): boolean {
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}$/.test(text);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

/** Parses the body of `POST /verify`. */
export function parseCheckBody(
  headers: IncomingHttpHeaders,
  body: Buffer | undefined,
): CheckBody | { problem: Problem } {
  const { 'content-type': type = '', 'content-encoding': coding = 'identity' } = headers;
  if (!JSON_UTF8.test(type) || coding.toLowerCase() !== 'identity') {
    const detail = 'Send the body with Content-Type: application/json, as UTF-8, without Content-Encoding.';
    return { problem: { code: 'unsupported_media_type', detail } };
  }
  let members: Record<string, unknown>;
  try {
    members = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    return { problem: { code: 'malformed_json', detail: 'The body is not a complete and valid JSON document.' } };
  }
  const fault = findFault(members);
  if (fault !== undefined) return { problem: { code: 'unprocessable', detail: fault } };
  const { dry_run: isDryRun = false, ...rest } = members as unknown as CheckBody & { dry_run?: boolean };
  return { ...rest, isDryRun };
}

/** Values are not repeated: one of them is the key. */
function findFault(members: unknown): string | undefined {
  if (typeof members !== 'object' || members === null || Array.isArray(members)) return 'The body must be an object.';
  for (const [name, value] of Object.entries(members)) {
    const [type, isValid] = (Object.hasOwn(MEMBERS, name) && MEMBERS[name]) || [];
    if (type === undefined) return `The body may have only the members ${Object.keys(MEMBERS).join(', ')}.`;
    if (!isValid?.(value)) return `The member ${name} must be ${type}.`;
  }
  return 'key' in members ? undefined : 'The member key is required.';
}
