/**
 * Warns of settings that are valid but cannot work or are dangerous. No warning repeats a value: values may be secrets
 * or come from the environment.
 */
import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { camelCase } from '../base/camel-case.ts';
import { isMapping } from '../base/mapping.ts';
import { isNearErrorColor } from '../formats/accent-color.ts';
import { hostOf } from '../formats/host.ts';
import { isWildcard, routeShape } from '../formats/path-and-origin.ts';
import { isLoopback, isTrustworthyUrl } from '../formats/url.ts';
import type { Section } from './config.ts';
import { MIN_TOKEN_LENGTH } from './cross-checks.ts';
import type { YamlDocument } from './document.ts';
import type { ConfigFault, Path } from './problems.ts';
import type { FileValues } from './schema.ts';
import type { Secrets } from './secrets.ts';

/** Larger blocks span several organisations: 10.0.0.0/8 and fc00::/7 are the largest private blocks. */
const LARGEST_PROXY_BLOCK = { ipv4: 8, ipv6: 7 } as const;
const MAPPED_IPV4_BITS = 96;
/** How long before a sunset operators are warned. */
const SUNSET_WARNING_MS = 14 * 24 * 3600 * 1000;

type Warn = (path: Path, what: string) => void;

/** Returns the warnings about a config file that has no problems. */
export function findWarnings(document: YamlDocument, values: FileValues, secrets: Secrets): ConfigFault[] {
  const warnings = [...document.warnings];
  const warn: Warn = (path, what) => warnings.push({ path, what });
  warnOfToken('admin', secrets, warn);
  warnOfToken('check', secrets, warn);
  if (values.admin && secrets('admin.token').kind === 'none' && !values.admin.jwt) {
    warn(['admin', 'token'], 'is not set, nor is admin.jwt: the admin API refuses every request');
  }
  warnOfCheck(values, warn);
  warnOfProxies(values, warn);
  warnOfPortal(values, warn);
  warnOfKeylessRoutes(values, warn);
  warnOfUnits(values, warn);
  if (values.upstream) warnOfBackend('default', ['upstream'], values.upstream, values, warn);
  for (const [name, backend] of values.upstreams) warnOfBackend(name, ['upstreams', name], backend, values, warn);
  for (const [index, route] of values.routes.entries()) {
    if (route.description !== undefined && route.scope === undefined) {
      warn(['routes', index, 'description'], 'has no effect without scope: the portal shows both together');
    }
    warnOfNumbers(['routes', index], UNWISE_BACKEND_NUMBERS, route, warn);
    const leftMs = route.sunsetAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(route.sunsetAt) - Date.now();
    if (leftMs > SUNSET_WARNING_MS) continue;
    const when = leftMs > 0 ? 'is less than two weeks away: from then on' : 'has passed:';
    warn(
      ['routes', index, 'sunset_at'],
      `${when} requests of this route get 410; "tollgate usage deprecated" lists who calls it`,
    );
  }
  warnOfNumbers([], UNWISE_NUMBERS, values, warn);
  if (secrets('tracing.headers').kind === 'value' && !isTrustworthyUrl(values.tracing?.endpoint ?? '')) {
    warn(['tracing', 'endpoint'], 'is not https: the credentials in headers_file can be read on the network');
  }
  if (values.plans.size === 0) {
    warn(['plans'], 'is empty: no customer can be created, and only customers with an override are served');
  }
  return warnings;
}

function warnOfUnits({ plans, routes }: FileValues, warn: Warn): void {
  for (const [index, { units }] of routes.entries()) {
    for (const setting of ['requests_per_hour', 'period.requests'] as const) {
      const low = [...plans].filter(([, { requestsPerHour, period }]) => {
        const ofPeriod = period?.beyond === 'refuse' ? period.requests : undefined;
        const limit = setting === 'requests_per_hour' ? requestsPerHour : ofPeriod;
        return typeof limit === 'number' && limit < units;
      });
      const names = low.map(([name]) => name).join(', ');
      if (low.length > 0) warn(['routes', index, 'units'], `is above ${setting} of ${names}: 403 cost_exceeds_limit`);
    }
  }
}

function warnOfToken(section: 'admin' | 'check', secrets: Secrets, warn: Warn): void {
  const token = secrets(`${section}.token`);
  if (token.kind === 'value' && token.value.length < MIN_TOKEN_LENGTH) {
    const advice = 'use a random one, such as from "openssl rand -hex 32"';
    warn(token.path, `is shorter than ${MIN_TOKEN_LENGTH} characters and can be guessed: ${advice}`);
  }
}

function warnOfCheck({ check, listen, plans, routes, upstream, upstreams }: FileValues, warn: Warn): void {
  if (check === undefined) return;
  const own = 'for requests that the gateway forwards itself, not for checks';
  if (upstream) warn(['upstream'], `counts only ${own}`);
  if (upstreams.size > 0) warn(['upstreams'], `counts only ${own}`);
  for (const [name, { maxConcurrent }] of plans) {
    if (maxConcurrent !== undefined) warn(['plans', name, 'max_concurrent'], `counts only ${own}`);
  }
  for (const [index, { maxBodyBytes }] of routes.entries()) {
    if (maxBodyBytes !== undefined) warn(['routes', index, 'max_body_bytes'], `counts only ${own}`);
  }
  if ((check.trustedProxies ?? listen.trustedProxies).length > 0) return;
  const effect = 'keys with allowed_addresses are refused, and failed keys are not counted by address';
  warn(['check', 'trusted_proxies'], `is empty, so no client address is known: ${effect}`);
}

function warnOfProxies({ check, listen }: FileValues, warn: Warn): void {
  for (const [section, proxies] of Object.entries({ listen: listen.trustedProxies, check: check?.trustedProxies })) {
    for (const [index, block] of (proxies ?? []).entries()) {
      if (!isLargeBlock(block)) continue;
      const risk = 'clients there can choose the client address that logs and limits use';
      warn([section, 'trusted_proxies', index], `includes public addresses: ${risk}`);
    }
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

function warnOfPortal({ portal }: FileValues, warn: Warn): void {
  if (!portal) return;
  const urls = [
    ['public_url', portal.publicUrl, 'sessions and new keys cross'],
    ['api_url', portal.apiUrl ?? '', 'keys cross'],
  ] as const;
  for (const [name, text, what] of urls) {
    const url = URL.parse(text);
    if (!url || url.protocol === 'https:' || isLoopback(hostOf(url))) continue;
    warn(['portal', name], `is http://: ${what} the network unencrypted`);
  }
  if (portal.accentColor && isNearErrorColor(portal.accentColor)) {
    const risk = 'customers take links and buttons for errors, or for what cannot be undone';
    warn(['portal', 'accent_color'], `is close to the color of errors: ${risk}; choose another hue`);
  }
}

function warnOfBackend(
  name: string,
  section: Path,
  backend: Section<'upstream'>,
  values: FileValues,
  warn: Warn,
): void {
  const { listen, ops, admin, portal, check, routes } = values;
  if (routes.every(({ upstream }) => upstream !== name)) warn(section, 'is not used: no route names this backend');
  warnOfNumbers(section, UNWISE_BACKEND_NUMBERS, backend, warn);
  for (const [index, text] of backend.urls.entries()) {
    const path = [...section, 'urls', index];
    const url = new URL(text);
    const port = url.port === '' ? { 'http:': 80, 'https:': 443 }[url.protocol] : Number(url.port);
    if (port === 0) warn(path, 'has port 0, to which no connection can be made');
    const host = url.hostname.replace(/^\[|\]$/g, '');
    for (const [section, listener] of Object.entries({ listen, ops, admin, portal, check })) {
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

function warnOfKeylessRoutes({ routes }: FileValues, warn: Warn): void {
  for (const [index, { key, methods, path }] of routes.entries()) {
    if (key !== 'none' || routeShape(path) !== '/{...}' || methods.every((method) => method === 'OPTIONS')) continue;
    const effect = 'opens every path of the backend that no other route has to anyone';
    warn(['routes', index, 'key'], `${effect}: name the paths that need no key`);
  }
}

/** Numbers that are valid, but unwise below or above a bound, and their effect. */
const UNWISE_NUMBERS: readonly [setting: string, side: '<' | '>', bound: number, effect: string][] = [
  ['limits.header_bytes', '<', 1024, 'common clients send more and get 431'],
  ['limits.header_count', '<', 10, 'common clients send more and get 431'],
  ['limits.target_bytes', '<', 256, 'paths with a query are longer and get 414'],
  ['limits.headers_timeout_ms', '<', 1000, 'clients on slow networks are disconnected'],
  ['limits.request_timeout_ms', '<', 1000, 'clients on slow networks are disconnected'],
  ['limits.body_stall_timeout_ms', '<', 1000, 'clients on slow networks are disconnected'],
  ['limits.response_stall_timeout_ms', '<', 1000, 'clients on slow networks are disconnected'],
  ['listen.keep_alive_timeout_ms', '<', 1000, 'clients reuse connections that are just being closed, and see resets'],
  ['store.timeout_ms', '<', 10, 'a healthy Redis often takes longer, and counts as unavailable'],
  ['store.timeout_ms', '>', 2000, 'while Redis hangs, requests wait that long'],
  ['shutdown.drain_ms', '<', 1000, 'each restart aborts requests in flight'],
  ['auth.cache_seconds', '>', 3600, 'while changes are not pushed, revoked keys keep working that long'],
  ['auth.stale_if_error_seconds', '>', 86_400, 'while the store is unavailable, revoked keys keep working that long'],
];

/** The same for the settings of a backend, some of which a route overrides. */
const UNWISE_BACKEND_NUMBERS: typeof UNWISE_NUMBERS = [
  ['response_header_bytes', '<', 4096, 'common backends send more, and clients get 502'],
  ['connect_timeout_ms', '<', 10, 'a healthy backend often takes longer, and is taken out of service'],
  ['response_timeout_ms', '<', 100, 'a healthy backend often takes longer, and clients get 504'],
  ['idle_timeout_ms', '<', 100, 'a healthy backend often pauses for longer, and responses are truncated'],
  ['total_timeout_ms', '<', 100, 'a healthy backend often takes longer, and clients get 504'],
  [
    'health_check.interval_ms',
    '<',
    1000,
    'each worker of each gateway checks that often, and a check must pass within that time',
  ],
];

/** By the last part of a setting's name. */
const UNITS: Readonly<Record<string, string>> = { bytes: 'bytes', count: 'headers', ms: 'ms', seconds: 'seconds' };

/** `value`: of the section at `section`, which has the settings of `numbers`. */
function warnOfNumbers(section: Path, numbers: typeof UNWISE_NUMBERS, value: unknown, warn: Warn): void {
  const member = (parent: unknown, name: string) => (isMapping(parent) ? parent[camelCase(name)] : undefined);
  for (const [setting, side, bound, effect] of numbers) {
    const path = setting.split('.');
    const number = path.reduce<unknown>(member, value);
    if (typeof number !== 'number' || (side === '<' ? number >= bound : number <= bound)) continue;
    const unit = UNITS[setting.split('_').at(-1) ?? ''];
    warn([...section, ...path], `is ${side === '<' ? 'below' : 'above'} ${bound} ${unit}: ${effect}`);
  }
}
