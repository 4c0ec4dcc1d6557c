/**
 * Warns of settings that are valid but cannot work or are dangerous. No warning repeats a value: values may be secrets
 * or come from the environment.
 */
import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { MIN_TOKEN_LENGTH } from './cross-checks.ts';
import type { ConfigDocument } from './document.ts';
import { isLoopback, isWildcard } from './formats.ts';
import type { Path, Problem } from './problems.ts';
import type { FileValues } from './schema.ts';
import type { Secrets } from './secrets.ts';

/** Larger blocks span several organisations: 10.0.0.0/8 and fc00::/7 are the largest private blocks. */
const LARGEST_PROXY_BLOCK = { ipv4: 8, ipv6: 7 } as const;
const MAPPED_IPV4_BITS = 96;

type Warn = (path: Path, what: string) => void;

/** Returns the warnings about a config file that has no problems. */
export function findWarnings(document: ConfigDocument, values: FileValues, secrets: Secrets): Problem[] {
  const warnings: Problem[] = [];
  const warn: Warn = (path, what) => warnings.push({ path, what });
  for (const path of document.bareVariables) {
    const advice = `write \${NAME} if a variable is meant; else move the value to a variable or file`;
    warn(path, `contains "$" and a name without braces, which is not replaced: ${advice}`);
  }
  warnOfAdminToken(values, secrets, warn);
  warnOfProxies(values, warn);
  warnOfUpstreams(values, warn);
  warnOfNumbers(values, warn);
  if (Object.keys(values.plans).length === 0) {
    warn(['plans'], 'is empty: no customer can be created, and only customers with an override are served');
  }
  return warnings;
}

function warnOfAdminToken({ admin }: FileValues, { 'admin.token': token }: Secrets, warn: Warn): void {
  if (token.kind === 'value' && token.value.length < MIN_TOKEN_LENGTH) {
    const advice = 'use a random one, such as from "openssl rand -hex 32"';
    warn(token.path, `is shorter than ${MIN_TOKEN_LENGTH} characters and can be guessed: ${advice}`);
  }
  if (admin && token.kind === 'none' && !admin.jwt) {
    warn(['admin', 'token'], 'is not set, nor is admin.jwt: the admin API refuses every request');
  }
}

function warnOfProxies({ listen }: FileValues, warn: Warn): void {
  for (const [index, block] of listen.trusted_proxies.entries()) {
    if (!isLargeBlock(block)) continue;
    const risk = 'clients there can choose the client address that logs and limits use';
    warn(['listen', 'trusted_proxies', index], `includes public addresses: ${risk}`);
  }
  if (listen.trust_forwarded_host && listen.trusted_proxies.length === 0) {
    warn(['listen', 'trust_forwarded_host'], 'has no effect without listen.trusted_proxies');
  }
}

function isLargeBlock(block: string): boolean {
  const [address = '', bits] = block.split('/');
  if (bits === undefined) return false;
  if (isIP(address) === 4) return Number(bits) < LARGEST_PROXY_BLOCK.ipv4;
  const isMapped = /^::ffff:/i.test(address) && Number(bits) >= MAPPED_IPV4_BITS;
  return Number(bits) < (isMapped ? MAPPED_IPV4_BITS + LARGEST_PROXY_BLOCK.ipv4 : LARGEST_PROXY_BLOCK.ipv6);
}

function warnOfUpstreams({ listen, ops, admin, upstream }: FileValues, warn: Warn): void {
  for (const [index, text] of upstream.urls.entries()) {
    const path = ['upstream', 'urls', index];
    const url = new URL(text);
    const port = url.port === '' ? { 'http:': 80, 'https:': 443 }[url.protocol] : Number(url.port);
    if (port === 0) warn(path, 'has port 0, to which no connection can be made');
    const host = url.hostname.replace(/^\[|\]$/g, '');
    for (const [section, listener] of Object.entries({ listen, ops, admin })) {
      if (!listener || listener.port === 0 || listener.port !== port || !reaches(host, listener.host)) continue;
      warn(path, `is the gateway's own listener ${section}: name the backend`);
    }
  }
}

/** Returns whether a connection to `host` from this machine arrives at a listener on `listenHost`. */
function reaches(host: string, listenHost: string): boolean {
  if (host === listenHost) return true;
  const isLocal = isLoopback(host) || isWildcard(host);
  if (isWildcard(listenHost)) {
    const own = Object.values(networkInterfaces()).flat();
    return isLocal || own.some((address) => address?.address === host);
  }
  return isLoopback(listenHost) && isLocal && (host === 'localhost' || listenHost === 'localhost' || isWildcard(host));
}

function warnOfNumbers({ auth, limits, listen, shutdown, store, upstream }: FileValues, warn: Warn): void {
  const below = (path: Path, value: number | undefined, min: number, unit: string, effect: string): void => {
    if (value !== undefined && value < min) warn(path, `is below ${min} ${unit}: ${effect}`);
  };
  const above = (path: Path, value: number, max: number, unit: string, effect: string): void => {
    if (value > max) warn(path, `is above ${max} ${unit}: ${effect}`);
  };
  below(['limits', 'header_bytes'], limits.header_bytes, 1024, 'bytes', 'common clients send more and get 431');
  below(['limits', 'header_count'], limits.header_count, 10, 'headers', 'common clients send more and get 431');
  below(['limits', 'target_bytes'], limits.target_bytes, 256, 'bytes', 'paths with a query are longer and get 414');
  const slow = 'clients on slow networks are disconnected';
  below(['limits', 'headers_timeout_ms'], limits.headers_timeout_ms, 1000, 'ms', slow);
  below(['limits', 'request_timeout_ms'], limits.request_timeout_ms, 1000, 'ms', slow);
  below(['limits', 'answer_stall_timeout_ms'], limits.answer_stall_timeout_ms, 1000, 'ms', slow);
  const reused = 'clients reuse connections that are just being closed, and see resets';
  below(['listen', 'keep_alive_timeout_ms'], listen.keep_alive_timeout_ms, 1000, 'ms', reused);
  const unreached = 'a healthy Redis often takes longer, and counts as unavailable';
  below(['store', 'timeout_ms'], store.timeout_ms, 10, 'ms', unreached);
  above(['store', 'timeout_ms'], store.timeout_ms, 2000, 'ms', 'while Redis hangs, requests wait that long');
  const connecting = 'a healthy backend often takes longer, and is taken out of service';
  below(['upstream', 'connect_timeout_ms'], upstream.connect_timeout_ms, 10, 'ms', connecting);
  const responding = 'a healthy backend often takes longer, and clients get 504';
  below(['upstream', 'response_timeout_ms'], upstream.response_timeout_ms, 100, 'ms', responding);
  below(['upstream', 'total_timeout_ms'], upstream.total_timeout_ms, 100, 'ms', responding);
  const large = 'common backends send more, and clients get 502';
  below(['upstream', 'response_header_bytes'], upstream.response_header_bytes, 4096, 'bytes', large);
  const checked = 'each worker of each gateway checks that often, and a check must pass within that time';
  below(['upstream', 'health_check', 'interval_ms'], upstream.health_check?.interval_ms, 1000, 'ms', checked);
  below(['shutdown', 'drain_ms'], shutdown.drain_ms, 1000, 'ms', 'each restart aborts requests in flight');
  const cached = 'while changes are not pushed, revoked keys keep working that long';
  above(['auth', 'cache_seconds'], auth.cache_seconds, 3600, 'seconds', cached);
  const stale = 'while the store is unavailable, revoked keys keep working that long';
  above(['auth', 'stale_if_error_seconds'], auth.stale_if_error_seconds, 86_400, 'seconds', stale);
}
