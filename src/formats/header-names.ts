/** Which header names the gateway treats in a way of its own. */

/**
 * Headers that concern one connection only and that a gateway never forwards, in either direction (RFC 9110 §7.6.1).
 * `Proxy-Authenticate`, `Proxy-Authentication-Info` and `Proxy-Authorization` concern one hop only (§11.7), so they end
 * here. `HTTP2-Settings` belongs to the h2c upgrade (RFC 7540 §3.2.1), which the gateway never makes.
 */
export const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Names of client headers that are not forwarded: the gateway sets them, decides about them or has handled them. */
export const NEVER_FORWARDED: ReadonlySet<string> = new Set([
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
 * Headers with a meaning of their own, which therefore cannot hold an API key: those of HTTP and of web standards, those
 * that browsers add, and those that the gateway reads or sends.
 */
const TAKEN: ReadonlySet<string> = new Set([
  ...NEVER_FORWARDED,
  ...`
    a-im age allow alpn alt-svc alt-used alternates apply-to-redirect-ref authentication-control authentication-info
    available-dictionary baggage cache-control cache-status capsule-protocol cdn-cache-control cdn-loop clear-site-data
    client-cert client-cert-chain close cookie cookie2 date dav delta-base deprecation depth destination device-memory
    dictionary-id digest dnt downlink dpop dpop-nonce dpr early-data ect etag expect-ct expires from idempotency-key im
    keep-alive label last-event-id last-modified link location lock-token max-forwards memento-datetime mime-version
    negotiate nel ordering-type origin origin-agent-cluster overwrite p3p permissions-policy ping-from ping-to position
    pragma prefer preference-applied priority purpose range referer referrer-policy refresh report-to
    reporting-endpoints repr-digest retry-after rtt save-data schedule-reply schedule-tag server server-timing
    service-worker service-worker-allowed service-worker-navigation-preload set-cookie set-cookie2 signature
    signature-input slug soapaction sourcemap speculation-rules status strict-transport-security sunset
    surrogate-capability surrogate-control tcn timeout timing-allow-origin tk topic traceparent tracestate ttl
    upgrade-insecure-requests urgency use-as-dictionary user-agent variant-vary vary via viewport-width
    want-content-digest want-digest want-repr-digest warning width www-authenticate x-api-key-expires-at
    x-content-type-options x-dns-prefetch-control x-frame-options x-original-method x-requested-with x-xss-protection
  `
    .trim()
    .split(/\s+/),
]);
const TAKEN_FAMILIES =
  /^(?:accept|access-control|content|cross-origin|if|proxy|ratelimit|sec|x-forwarded|x-ratelimit|x-tollgate)(?:-|$)/;

const UNUSUAL = /[^a-z0-9-]/;

/**
 * Replaces every character of a lower-case header name except letters and digits by `-`. Servers that pass headers as
 * variables (CGI, WSGI, PHP) read `_`, and some of them any other character of a token, as `-`: a spoofed header could
 * use each of them. Not cached: a look-up takes as long, and a cache could be filled with made-up names.
 */
export function comparableName(lowerName: string): string {
  return UNUSUAL.test(lowerName) ? lowerName.replace(/[^a-z0-9]/g, '-') : lowerName;
}

/** Returns whether a name may be in `auth.key_headers`. */
export function isKeyHeader(name: string): boolean {
  const comparable = comparableName(name.toLowerCase());
  return /^[a-z][a-z0-9_-]{0,63}$/i.test(name) && !TAKEN.has(comparable) && !TAKEN_FAMILIES.test(comparable);
}
