/**
 * Warns of settings that are valid but cannot work or are dangerous. No warning repeats a value: values may be secrets
 * or come from the environment.
 */
import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { camelCase } from './camel-case.ts';
import { MIN_TOKEN_LENGTH } from './cross-checks.ts';
import { type ConfigDocument, isMapping } from './document.ts';
import { isLoopback, isWildcard } from './formats.ts';
import type { ConfigFault, Path } from './problems.ts';
import type { FileValues } from './schema.ts';
import type { Secrets } from './secrets.ts';

/** Larger blocks span several organisations: 10.0.0.0/8 and fc00::/7 are the largest private blocks. */
const LARGEST_PROXY_BLOCK = { ipv4: 8, ipv6: 7 } as const;
const MAPPED_IPV4_BITS = 96;

type Warn = (path: Path, what: string) => void;

/** Returns the warnings about a config file that has no problems. */
export function findWarnings(document: ConfigDocument, values: FileValues, secrets: Secrets): ConfigFault[] {
  const warnings: ConfigFault[] = [];
  const warn: Warn = (path, what) => warnings.push({ path, what });
  for (const path of document.bareVariables) {
    const advice = `write \${NAME} if a variable is meant; else move the value to a variable or file`;
    warn(path, `contains "$" and a name without braces, which is not replaced: ${advice}`);
  }
  for (const { path, formerly } of document.renamed)
    warn(path, `is called ${formerly} here, its former name: rename it`);
  warnOfAdminToken(values, secrets, warn);
  warnOfProxies(values, warn);
  warnOfUpstreams(values, warn);
  warnOfNumbers(values, warn);
  if (values.plans.size === 0) {
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
  for (const [index, block] of listen.trustedProxies.entries()) {
    if (!isLargeBlock(block)) continue;
    const risk = 'clients there can choose the client address that logs and limits use';
    warn(['listen', 'trusted_proxies', index], `includes public addresses: ${risk}`);
  }
  if (listen.trustForwardedHost && listen.trustedProxies.length === 0) {
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

/** Numbers that are valid, but unwise below or above a bound. */
const UNWISE_NUMBERS: readonly {
  readonly below?: Readonly<Record<string, number>>;
  readonly above?: Readonly<Record<string, number>>;
  readonly effect: string;
}[] = [
  { below: { 'limits.header_bytes': 1024 }, effect: 'common clients send more and get 431' },
  { below: { 'limits.header_count': 10 }, effect: 'common clients send more and get 431' },
  { below: { 'limits.target_bytes': 256 }, effect: 'paths with a query are longer and get 414' },
  {
    below: {
      'limits.headers_timeout_ms': 1000,
      'limits.request_timeout_ms': 1000,
      'limits.response_stall_timeout_ms': 1000,
    },
    effect: 'clients on slow networks are disconnected',
  },
  {
    below: { 'listen.keep_alive_timeout_ms': 1000 },
    effect: 'clients reuse connections that are just being closed, and see resets',
  },
  { below: { 'store.timeout_ms': 10 }, effect: 'a healthy Redis often takes longer, and counts as unavailable' },
  { above: { 'store.timeout_ms': 2000 }, effect: 'while Redis hangs, requests wait that long' },
  { below: { 'upstream.response_header_bytes': 4096 }, effect: 'common backends send more, and clients get 502' },
  {
    below: { 'upstream.connect_timeout_ms': 10 },
    effect: 'a healthy backend often takes longer, and is taken out of service',
  },
  {
    below: { 'upstream.response_timeout_ms': 100, 'upstream.total_timeout_ms': 100 },
    effect: 'a healthy backend often takes longer, and clients get 504',
  },
  {
    below: { 'upstream.health_check.interval_ms': 1000 },
    effect: 'each worker of each gateway checks that often, and a check must pass within that time',
  },
  { below: { 'shutdown.drain_ms': 1000 }, effect: 'each restart aborts requests in flight' },
  {
    above: { 'auth.cache_seconds': 3600 },
    effect: 'while changes are not pushed, revoked keys keep working that long',
  },
  {
    above: { 'auth.stale_if_error_seconds': 86_400 },
    effect: 'while the store is unavailable, revoked keys keep working that long',
  },
];

/** By the last part of a setting's name. */
const UNITS: Readonly<Record<string, string>> = { bytes: 'bytes', count: 'headers', ms: 'ms', seconds: 'seconds' };

function warnOfNumbers(values: FileValues, warn: Warn): void {
  const member = (value: unknown, name: string) => (isMapping(value) ? value[camelCase(name)] : undefined);
  for (const { below = {}, above = {}, effect } of UNWISE_NUMBERS) {
    for (const [key, bound] of [...Object.entries(below), ...Object.entries(above)]) {
      const value = key.split('.').reduce<unknown>(member, values);
      if (typeof value !== 'number' || (Object.hasOwn(below, key) ? value >= bound : value <= bound)) continue;
      const side = value < bound ? 'below' : 'above';
      warn(key.split('.'), `is ${side} ${bound} ${UNITS[key.split('_').at(-1) ?? '']}: ${effect}`);
    }
  }
}
