/**
 * Rules that concern several keys. Each rule skips values that are invalid by themselves, so that one run reports both
 * invalid values and invalid combinations. No problem repeats a value, because it may come from the environment.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { parseStoreUrl, type StoreAddress } from '../store/store-address.ts';
import { checkCertificate, readCertificates } from '../tls/certificate.ts';
import { type ConfigDocument, isMapping } from './document.ts';
import { isLoopback, isRoutePrefix, isWildcard, isWithin, parseUpstreamUrl } from './formats.ts';
import { settingAt } from './json-schema.ts';
import type { Path, Problem } from './problems.ts';
import type { SchemaCheck } from './schema-check.ts';
import type { Secret, Secrets } from './secrets.ts';
import { readSigningKeys } from './signing-keys.ts';

/** Returns the value at `path`, or its default; undefined if there is none or it breaks its own rule. */
type Valid = (path: Path) => unknown;
/** Shorter tokens are refused if other machines can reach the admin listener. */
const GUESSABLE_TOKEN_LENGTH = 8;

type Report = (path: Path, what: string) => void;

interface Subject {
  readonly document: ConfigDocument;
  readonly valid: Valid;
  readonly report: Report;
}

export function crossCheck(document: ConfigDocument, isValid: SchemaCheck['isValid'], secrets: Secrets): Problem[] {
  const problems: Problem[] = [];
  const subject: Subject = {
    document,
    valid(path) {
      if (!isValid(path)) return undefined;
      const value = document.at(path);
      return value === undefined ? settingAt(path)?.default : value;
    },
    report: (path, what) => problems.push({ path, what }),
  };
  checkListeners(subject);
  checkTimeouts(subject);
  checkUpstreams(subject);
  checkRoutes(subject);
  checkAliases(subject);
  checkUsagePath(subject);
  checkFormerPlans(subject);
  checkSecrets(subject, secrets);
  checkListenTls(subject, secrets);
  checkUpstreamTls(subject, secrets);
  checkSeed(subject, secrets);
  checkWorkers(subject, secrets);
  return problems;
}

function checkListeners({ document, valid, report }: Subject): void {
  const seen: { section: string; host: string; port: number }[] = [];
  for (const section of ['listen', 'ops', 'admin']) {
    if (section === 'admin' && !isMapping(document.at([section]))) continue;
    const [host, port] = [valid([section, 'host']), valid([section, 'port'])];
    if (typeof host !== 'string' || typeof port !== 'number' || port === 0) continue;
    const same = seen.find(
      (other) => other.port === port && (other.host === host || isWildcard(other.host) || isWildcard(host)),
    );
    if (same) {
      // A default has no line, so the problem is reported for a port that the file sets.
      const isGiven = document.at([section, 'port']) !== undefined;
      const [at, other] = isGiven ? [section, same.section] : [same.section, section];
      report([at, 'port'], `is the port of ${other} too, on the same address; give each its own`);
    }
    seen.push({ section, host, port });
  }
}

function checkTimeouts({ document, valid, report }: Subject): void {
  const atMost = (section: string, low: string, high: string): void => {
    const [lower, upper] = [valid([section, low]), valid([section, high])];
    if (typeof lower !== 'number' || typeof upper !== 'number' || lower <= upper) return;
    if (document.at([section, high]) === undefined) report([section, low], `must not be above ${high}`);
    else report([section, high], `must not be below ${low}`);
  };
  atMost('upstream', 'response_timeout_ms', 'total_timeout_ms');
  atMost('upstream', 'max_connections_per_customer', 'max_connections');
  // Node.js refuses to start a server whose headers timeout exceeds its request timeout.
  atMost('limits', 'headers_timeout_ms', 'request_timeout_ms');
}

function checkUpstreams({ document, valid, report }: Subject): void {
  const urls = document.at(['upstream', 'urls']);
  if (!Array.isArray(urls)) return;
  const first = new Map<string, number>();
  for (const index of urls.keys()) {
    const path = ['upstream', 'urls', index];
    const url = valid(path);
    if (typeof url !== 'string') continue;
    const canonical = parseUpstreamUrl(url) ?? url;
    const earlier = first.get(canonical);
    if (earlier !== undefined) report(path, `is the same as urls[${earlier}]; keep one`);
    else first.set(canonical, index);
  }
  const sample = first.get('sample');
  if (sample === undefined || first.size === 1) return;
  report(['upstream', 'urls', sample], 'must stand alone: the bundled backend shares no requests');
}

interface RoutePaths {
  /** Paths by route index, without invalid ones. */
  readonly byIndex: ReadonlyMap<number, string>;
  readonly complete: boolean;
}

function routePaths({ document, valid }: Subject): RoutePaths {
  const given = document.at(['routes']);
  const routes = given ?? valid(['routes']);
  const byIndex = new Map<number, string>();
  if (!Array.isArray(routes)) return { byIndex, complete: false };
  for (const [index, route] of routes.entries()) {
    const path = given === undefined ? route.path : valid(['routes', index, 'path']);
    if (typeof path === 'string') byIndex.set(index, path);
  }
  return { byIndex, complete: routes.length > 0 && byIndex.size === routes.length };
}

function checkRoutes(subject: Subject): void {
  const first = new Map<string, number>();
  for (const [index, path] of routePaths(subject).byIndex) {
    // Parameter names do not matter: /a/{x} and /a/{y} match the same paths.
    const shape = path.replace(/\{[^/]*\}/g, '{}');
    const earlier = first.get(shape);
    if (earlier === undefined) first.set(shape, index);
    else subject.report(['routes', index, 'path'], `matches the same as routes[${earlier}].path; keep one`);
  }
}

function checkAliases(subject: Subject): void {
  const { document, valid, report } = subject;
  const aliases = document.at(['aliases']);
  if (!isMapping(aliases)) return;
  const { byIndex, complete } = routePaths(subject);
  const routes = [...byIndex.values()];
  const names = Object.keys(aliases);
  for (const alias of names) {
    const path = ['aliases', alias];
    if (isRoutePrefix(alias, routes)) {
      report(path, 'is a prefix of a route already; an alias must be a prefix that no route has');
    }
    if (names.some((other) => other !== alias && isWithin(alias, other))) {
      report(path, 'lies below another alias; aliases must not contain each other');
    }
    const target = valid(path);
    // Skipped if a route is invalid: the alias may refer to that route.
    if (typeof target === 'string' && complete && !isRoutePrefix(target, routes)) {
      report(path, 'must stand for the prefix of a route, and no route is at or below what it stands for');
    }
  }
}

function checkUsagePath(subject: Subject): void {
  const { document, valid, report } = subject;
  const usagePath = valid(['usage_path']);
  if (typeof usagePath !== 'string' || document.at(['usage_path']) === undefined) return;
  const route = [...routePaths(subject).byIndex].find(([, path]) => path === usagePath);
  if (route) report(['usage_path'], `is the path of routes[${route[0]}] too; give it one of its own`);
}

/** Reports former plan names that another plan already has: each name must identify one plan. */
function checkFormerPlans({ document, valid, report }: Subject): void {
  const plans = document.at(['plans']);
  if (!isMapping(plans)) return;
  const taken = new Map<unknown, string>();
  for (const name of Object.keys(plans)) {
    const formerly = valid(['plans', name, 'formerly']);
    if (!Array.isArray(formerly)) continue;
    for (const [index, former] of formerly.entries()) {
      const path = ['plans', name, 'formerly', index];
      const other = taken.get(former);
      if (Object.hasOwn(plans, former)) report(path, 'is the name of a plan that there is; take one of the two away');
      else if (other !== undefined) report(path, `is given for plan ${other} already; keep one`);
      else taken.set(former, name);
    }
  }
}

function checkSecrets(subject: Subject, secrets: Secrets): void {
  const { document, valid, report } = subject;
  const { adminToken, assertionSigningKey, storeUrl, upstreamAuthorization: authorization } = secrets;
  if (adminToken.kind === 'value' && !/^[\x21-\x7e]+$/.test(adminToken.value)) {
    report(adminToken.path, 'must be printable ASCII without spaces, or no request could carry it');
  }
  const adminHost = valid(['admin', 'host']);
  const isReachable = typeof adminHost === 'string' && !isLoopback(adminHost);
  if (adminToken.kind === 'value' && isReachable && adminToken.value.length < GUESSABLE_TOKEN_LENGTH) {
    const advice = 'use a random one, such as from "openssl rand -hex 32"';
    report(adminToken.path, `can be guessed, and admin.host is not a loopback address; ${advice}`);
  }
  const store = document.at(['store']);
  if (storeUrl.kind === 'none' && (store === undefined || isMapping(store))) {
    report(
      ['store', 'url'],
      'is required, as url or url_file: redis://…, redis+sentinel://…, redis+cluster://… or sqlite:FILE',
    );
  }
  if (storeUrl.kind === 'value') {
    const address = parseStoreUrl(storeUrl.value);
    if (address.kind === 'invalid') report(storeUrl.path, address.fault);
    else checkStoreAccess(subject, address, secrets);
  }
  if (authorization.kind === 'value' && !/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(authorization.value)) {
    report(authorization.path, 'must be printable ASCII without spaces around it, as a header value is');
  }
  const signingKeyFile = ['identity', 'assertion', 'signing_key_file'];
  const signingKeys = readSigningKeys(assertionSigningKey.kind === 'value' ? assertionSigningKey.value : '');
  // A missing or unreadable signing key file is already reported.
  const isRead = assertionSigningKey.kind !== 'unknown' && typeof document.at(signingKeyFile) === 'string';
  if (isRead && signingKeys.kind === 'invalid') report(signingKeyFile, signingKeys.fault);
  const mode = valid(['upstream', 'credentials']);
  if (!isMapping(document.at(['upstream'])) || mode === undefined) return;
  if (mode === 'replace' && authorization.kind === 'none') {
    report(['upstream', 'authorization'], 'is required, here or by authorization_file, with credentials: replace');
  }
  if (mode !== 'replace' && authorization.kind === 'value') {
    report(authorization.path, 'is used with credentials: replace only; remove it or set that');
  }
}

function checkListenTls({ document, report }: Subject, { listenCertificate, listenKey }: Secrets): void {
  const tls = document.at(['listen', 'tls']);
  if (!isMapping(tls) || typeof tls.cert_file !== 'string' || typeof tls.key_file !== 'string') return;
  if (listenCertificate.kind === 'unknown' || listenKey.kind === 'unknown') return;
  const checked = checkCertificate(textOf(listenCertificate), textOf(listenKey));
  if (checked.kind === 'invalid') report(['listen', 'tls', `${checked.at}_file`], checked.fault);
}

function checkUpstreamTls({ document, valid, report }: Subject, secrets: Secrets): void {
  if (!isMapping(document.at(['upstream', 'tls']))) return;
  const { upstreamCa: ca, upstreamCertificate: cert, upstreamKey: key } = secrets;
  const urls = valid(['upstream', 'urls']);
  if (Array.isArray(urls) && !urls.some((url) => url.startsWith('https:'))) {
    report(['upstream', 'tls'], 'is used with https:// in upstream.urls only; remove it or set that');
  }
  if (ca.kind === 'value' && readCertificates(ca.value) === undefined) {
    report(ca.path, 'must name a file with certificates in PEM (BEGIN CERTIFICATE)');
  }
  if (cert.kind === 'value' && key.kind === 'none') {
    report(cert.path, 'needs key_file besides it: a certificate is shown by whoever has its key');
  }
  if (key.kind === 'value' && cert.kind === 'none')
    report(key.path, 'needs cert_file besides it: the certificate that it belongs to');
  if (cert.kind !== 'value' || key.kind !== 'value') return;
  const checked = checkCertificate(cert.value, key.value);
  if (checked.kind === 'invalid') report(['upstream', 'tls', `${checked.at}_file`], checked.fault);
}

function textOf(secret: Secret): string {
  return secret.kind === 'value' ? secret.value : '';
}

function checkStoreAccess({ document, report }: Subject, address: StoreAddress, secrets: Secrets): void {
  const { storeCa: ca, storeCertificate: cert, storeKey: key } = secrets;
  if (isMapping(document.at(['store', 'sentinel'])) && address.kind !== 'sentinel') {
    report(['store', 'sentinel'], 'is used with redis+sentinel:// in store.url only; remove it or set that');
  }
  if (!isMapping(document.at(['store', 'tls']))) return;
  if (!('tls' in address && address.tls)) {
    report(['store', 'tls'], 'is used with rediss://, rediss+sentinel:// or rediss+cluster:// in store.url only');
    return;
  }
  for (const [given, missing, name] of [
    [cert, key, 'key_file'],
    [key, cert, 'cert_file'],
  ] as const) {
    if (given.kind === 'value' && missing.kind === 'none') {
      report(given.path, `is given without ${name}; a client's certificate needs both`);
    }
  }
  if (ca.kind === 'value' && !isCertificate(ca.value)) report(ca.path, 'must have certificates in PEM');
  if (cert.kind !== 'value' || key.kind !== 'value') return;
  if (!isCertificate(cert.value)) report(cert.path, 'must have a certificate in PEM');
  else if (!isKeyOf(cert.value, key.value))
    report(key.path, 'must have the private key of cert_file, in PEM, unencrypted');
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).subject !== undefined;
  } catch {
    return false;
  }
}

function isKeyOf(certificate: string, pem: string): boolean {
  try {
    return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(pem));
  } catch {
    return false;
  }
}

function checkSeed(subject: Subject, { storeUrl }: Secrets): void {
  const { document, valid, report } = subject;
  if (!isMapping(document.at(['seed']))) return;
  for (const section of ['listen', 'ops']) {
    const host = valid([section, 'host']);
    if (typeof host !== 'string' || isLoopback(host)) continue;
    report(['seed'], `has public keys, so ${section}.host must be a loopback address such as 127.0.0.1`);
  }
  const store = storeUrl.kind === 'value' ? parseStoreUrl(storeUrl.value).kind : 'invalid';
  if (store !== 'sqlite' && store !== 'invalid') {
    report(['seed'], 'has public keys, so store.url must be sqlite:FILE');
  }
  const customers = document.at(['seed', 'customers']);
  if (!Array.isArray(customers)) return;
  for (const index of customers.keys()) checkSeedPlan(subject, index);
  for (const name of ['id', 'key']) {
    const first = new Map<unknown, number>();
    for (const index of customers.keys()) {
      const value = valid(['seed', 'customers', index, name]);
      const earlier = first.get(value);
      if (earlier !== undefined) report(['seed', 'customers', index, name], `is that of customers[${earlier}] too`);
      else if (value !== undefined) first.set(value, index);
    }
  }
}

/** SQLite's file belongs to one process. `auto` is refused too, even on a machine where it would mean 1. */
function checkWorkers({ valid, report }: Subject, { storeUrl }: Secrets): void {
  const workers = valid(['workers']);
  const store = storeUrl.kind === 'value' ? parseStoreUrl(storeUrl.value).kind : 'invalid';
  if (store !== 'sqlite' || workers === undefined || workers === 1) return;
  report(['workers'], 'must be 1 with the embedded store; several workers need Redis in store.url');
}

function checkSeedPlan({ document, valid, report }: Subject, index: number): void {
  const path = ['seed', 'customers', index];
  const plan = valid([...path, 'plan']);
  const plans = document.at(['plans']) ?? valid(['plans']);
  if (typeof plan !== 'string' || !isMapping(plans)) return;
  if (!Object.hasOwn(plans, plan)) {
    report([...path, 'plan'], `must be one of the plans: ${Object.keys(plans).join(', ')}`);
    return;
  }
  const entry = plans[plan];
  const isCustom = isMapping(entry) && entry.requests_per_hour === 'custom';
  if (isCustom && document.at([...path, 'requests_per_hour']) === undefined) {
    report([...path, 'requests_per_hour'], `is required, because plan ${plan} is custom`);
  }
}
