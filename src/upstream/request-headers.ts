import { comparableName, connectionNamed, HOP_BY_HOP } from './hop-by-hop.ts';
import { headerLine, headerLineOf } from './http1/upstream-connection.ts';

export { headerLineOf };

/** Which credentials and which Host the backend gets. */
export interface CredentialsPolicy {
  /** `strip`: no Authorization header; `forward`: the client's; `replace`: `authorization` below. */
  readonly credentials: 'strip' | 'forward' | 'replace';
  /** The complete value of the upstream's Authorization header, for `replace`. */
  readonly authorization?: string | undefined;
  /** Whether the upstream gets the client's Host instead of its own authority. */
  readonly preserveHost: boolean;
}

/** Names of client headers that are not forwarded: the gateway sets them, decides about them or has handled them. */
const NEVER_PASSED: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  'cf-connecting-ip',
  'cf-connecting-ipv6',
  'client-ip',
  'content-length', // the gateway announces the body that it sends
  'expect', // handled by the gateway
  'fastly-client-ip',
  'forwarded',
  'host',
  'proxy', // CGI would turn it into HTTP_PROXY, the variable that names the backend's own proxy
  'remote-addr',
  'remote-email', // Remote-*: the user that an authenticating proxy reports
  'remote-groups',
  'remote-name',
  'remote-user',
  'true-client-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-forwarded',
  'x-http-method',
  'x-http-method-override',
  'x-method-override',
  'x-original-host',
  'x-original-uri',
  'x-original-url',
  'x-originating-ip',
  'x-real-ip',
  'x-remote-addr',
  'x-remote-group',
  'x-remote-ip',
  'x-remote-user',
  'x-request-id',
  'x-rewrite-url',
]);

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
 * cookies, and the credentials. Headers of the gateway itself are to be put after them, where a Connection header of the
 * client cannot remove them.
 * @param rawHeaders - flat, as received
 * @param spoofed - called for each dropped X-Tollgate-* header: these identify the client, so only the gateway may set them
 */
export function passedHeaders(rawHeaders: readonly string[], policy: CredentialsPolicy, spoofed?: () => void): string {
  const named = connectionNamed(rawHeaders);
  let lines = '';
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const lower = name.toLowerCase();
    const comparable = comparableName(lower);
    if (NEVER_PASSED.has(comparable)) continue;
    if (isGatewaysOwn(comparable)) {
      if (comparable.startsWith(IDENTITY_PREFIX)) spoofed?.();
      continue;
    }
    if (comparable === 'authorization' && policy.credentials !== 'forward') continue;
    if (named?.has(lower)) continue;
    let value = rawHeaders[i + 1] ?? '';
    if (comparable === 'cookie' && value.includes('tollgate_')) {
      value = value.replace(CONSOLE_COOKIES, '');
      if (value === '') continue;
    }
    lines += headerLine(name, value);
  }
  if (policy.credentials === 'replace' && policy.authorization !== undefined) {
    lines += authorizationLine(policy.authorization);
  }
  return lines;
}
