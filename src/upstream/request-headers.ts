import { comparableName, NEVER_FORWARDED } from '../formats/header-names.ts';
import { connectionNamed } from './hop-by-hop.ts';
import { headerLine, headerLineOf } from './http1/upstream-connection.ts';

export { headerLineOf };

/** What the backend gets of the credentials and of Host. */
export interface HeaderPolicy {
  /** Comparable names of headers that are not forwarded. */
  readonly dropped: ReadonlySet<string>;
  /** Names in lower case that are forwarded although their comparable name is in `dropped`. */
  readonly kept: ReadonlySet<string>;
  /** The value of the Authorization header for the backend, if the gateway sets it. */
  readonly authorization?: string | undefined;
  /** Whether the backend gets the client's Host instead of its own authority. */
  readonly preserveHost: boolean;
}

/** What a request without a key passes on: it has no credentials of the gateway's. */
export const KEYLESS_POLICY: Omit<HeaderPolicy, 'preserveHost'> = { dropped: NEVER_FORWARDED, kept: new Set() };

interface HeaderSettings {
  /** `strip`: no header with an API key; `forward`: the one that the client sent; `replace`: `authorization` instead. */
  readonly credentials: 'strip' | 'forward' | 'replace';
  readonly authorization?: string | undefined;
  readonly preserveHost: boolean;
}

/** `keyHeaders`: the names of the headers that may hold an API key. Their other spellings are always dropped. */
export function headerPolicy(
  { credentials, authorization, preserveHost }: HeaderSettings,
  keyHeaders: readonly string[],
): HeaderPolicy {
  const names = keyHeaders.map((name) => name.toLowerCase());
  const dropped = new Set([...NEVER_FORWARDED, ...names.map(comparableName)]);
  const kept = new Set(credentials === 'forward' ? names : []);
  if (credentials !== 'replace') return { dropped, kept, preserveHost };
  return { dropped: dropped.add('authorization'), kept, authorization, preserveHost };
}

/**
 * Cookies of the gateway's console, in a Cookie header without white space around it. A browser sends them to every port
 * of the console's host.
 */
const CONSOLE_COOKIES = /^(?:(?:__Host-)?tollgate_[^;]*(?:;[ \t]*|$))+|;[ \t]*(?:__Host-)?tollgate_[^;]*/g;

/** Prefix of the headers that identify the client to the upstream. */
const IDENTITY_PREFIX = 'x-tollgate-';

function isGatewaysOwn(comparable: string): boolean {
  return (
    comparable.startsWith('x-') && (comparable.startsWith(IDENTITY_PREFIX) || comparable.startsWith('x-forwarded-'))
  );
}

const authorizationLine = headerLineOf('Authorization');

/**
 * Returns the headers of a request that are passed on: the client's end-to-end headers unchanged but for the console's
 * cookies, and the credentials by `policy`. Headers of the gateway itself are to be put after them, where a Connection header of the
 * client cannot remove them.
 * @param rawHeaders - flat, as received
 * @param spoofed - called for each dropped X-Tollgate-* header: these identify the client, so only the gateway may set them
 */
export function passedHeaders(
  rawHeaders: readonly string[],
  policy: Omit<HeaderPolicy, 'preserveHost'>,
  spoofed?: () => void,
): string {
  const named = connectionNamed(rawHeaders);
  let lines = '';
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const lower = name.toLowerCase();
    const comparable = comparableName(lower);
    if (policy.dropped.has(comparable) && !policy.kept.has(lower)) continue;
    if (isGatewaysOwn(comparable)) {
      if (comparable.startsWith(IDENTITY_PREFIX)) spoofed?.();
      continue;
    }
    if (named?.has(lower)) continue;
    let value = rawHeaders[i + 1] ?? '';
    if (comparable === 'cookie' && value.includes('tollgate_')) {
      value = value.replace(CONSOLE_COOKIES, '');
      if (value === '') continue;
    }
    lines += headerLine(name, value);
  }
  if (policy.authorization !== undefined) lines += authorizationLine(policy.authorization);
  return lines;
}
