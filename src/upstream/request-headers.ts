import { comparableName, connectionNamed, HOP_BY_HOP } from './hop-by-hop.ts';

/** What the upstream gets of the caller's credentials and Host. */
export interface CredentialsPolicy {
  /** `strip`: no Authorization; `forward`: the caller's own; `replace`: `authorization` below. */
  readonly credentials: 'strip' | 'forward' | 'replace';
  /** The whole value of the upstream's Authorization field, for `replace`. */
  readonly authorization?: string | undefined;
  /** Whether the upstream sees the caller's Host instead of its own authority. */
  readonly preserveHost: boolean;
}

export interface RequestHeadersOptions extends CredentialsPolicy {
  /** The gateway's own fields (X-Tollgate-*, X-Request-Id, X-Forwarded-*), flat. */
  readonly own: readonly string[];
  /**
   * The authority that the caller asked for, empty if unknown. Not read from the Host field: in absolute form the
   * target has it, and Host is to be ignored (RFC 9112 §3.2.2).
   */
  readonly host: string;
  /** Of the received request, such as `1.1`. */
  readonly httpVersion: string;
  /** Called for each field that was dropped because it claims to tell who calls, as only the gateway does. */
  spoofed?(): void;
}

/** Names that only the gateway may give to the upstream, that it decides about, or that it has dealt with itself. */
const NEVER_PASSED: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  'content-length', // requests have no content
  'expect', // the gateway answered it
  'forwarded',
  'host',
  'proxy', // CGI would make of it the variable that names the backend's own proxy
  'x-forwarded',
  'x-http-method',
  'x-http-method-override',
  'x-method-override',
  'x-original-host',
  'x-original-uri',
  'x-original-url',
  'x-real-ip',
  'x-request-id',
  'x-rewrite-url',
]);

/** Of the fields that tell the upstream who calls. */
const IDENTITY_PREFIX = 'x-tollgate-';

function isGatewaysOwn(comparable: string): boolean {
  return (
    comparable.startsWith('x-') && (comparable.startsWith(IDENTITY_PREFIX) || comparable.startsWith('x-forwarded-'))
  );
}

/**
 * The header fields of the upstream request, flat and in order: what the caller sent end to end, as it was sent, then
 * the gateway's own and its Via (RFC 9110 §7.6.3). Own fields come after the filter, so the caller's Connection field
 * cannot take them away. `rawHeaders`: flat, as received.
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
    headers.push(name, rawHeaders[i + 1] ?? '');
  }
  if (options.credentials === 'replace' && options.authorization !== undefined) {
    headers.push('Authorization', options.authorization);
  }
  for (const text of options.own) headers.push(text);
  headers.push('Via', `${options.httpVersion} tollgate`);
  return headers;
}
