import { comparableName, connectionNamed, HOP_BY_HOP } from './hop-by-hop.ts';

/** Which credentials and which Host the upstream gets. */
export interface CredentialsPolicy {
  /** `strip`: no Authorization header; `forward`: the client's; `replace`: `authorization` below. */
  readonly credentials: 'strip' | 'forward' | 'replace';
  /** The complete value of the upstream's Authorization header, for `replace`. */
  readonly authorization?: string | undefined;
  /** Whether the upstream gets the client's Host instead of its own authority. */
  readonly preserveHost: boolean;
}

export interface RequestHeadersOptions extends CredentialsPolicy {
  /** The gateway's own headers (X-Tollgate-*, X-Request-Id, X-Forwarded-*), flat (name, value, …). */
  readonly own: readonly string[];
  /**
   * The authority that the client requested; empty if unknown. Not read from the Host header: a target in absolute form
   * contains it, and Host must then be ignored (RFC 9112 §3.2.2).
   */
  readonly host: string;
  /** HTTP version of the received request, such as `1.1`. */
  readonly httpVersion: string;
  /** Called for each dropped X-Tollgate-* header: these identify the client, so only the gateway may set them. */
  spoofed?(): void;
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

/**
 * Returns the headers of the upstream request, flat and in order: the client's end-to-end headers unchanged but for the
 * console's cookies, then the gateway's own and its Via (RFC 9110 §7.6.3). The gateway's headers are added after the filter, so a Connection header
 * of the client cannot remove them. `rawHeaders`: flat, as received.
 */
export function buildRequestHeaders(rawHeaders: readonly string[], options: RequestHeadersOptions): string[] {
  const named = connectionNamed(rawHeaders);
  const headers: string[] = [];
  if (options.preserveHost && options.host !== '') headers.push('Host', options.host);
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const lower = name.toLowerCase();
    const comparable = comparableName(lower);
    if (NEVER_PASSED.has(comparable)) continue;
    if (isGatewaysOwn(comparable)) {
      if (comparable.startsWith(IDENTITY_PREFIX)) options.spoofed?.();
      continue;
    }
    if (comparable === 'authorization' && options.credentials !== 'forward') continue;
    if (named?.has(lower)) continue;
    let value = rawHeaders[i + 1] ?? '';
    if (comparable === 'cookie' && value.includes('tollgate_')) {
      value = value.replace(CONSOLE_COOKIES, '');
      if (value === '') continue;
    }
    headers.push(name, value);
  }
  if (options.credentials === 'replace' && options.authorization !== undefined) {
    headers.push('Authorization', options.authorization);
  }
  for (const text of options.own) headers.push(text);
  headers.push('Via', `${options.httpVersion} tollgate`);
  return headers;
}
