/**
 * Rules that concern several keys. Each rule skips values that are invalid by themselves, so that one run reports both
 * invalid values and invalid combinations. No problem repeats a value, because it may come from the environment.
 */

import { isMapping } from '../base/mapping.ts';
import { comparableName } from '../formats/header-names.ts';
import { logoType, MAX_LOGO_BYTES } from '../formats/logo.ts';
import {
  isRoutePrefix,
  isWildcard,
  isWithin,
  parseHeaderLines,
  parseUpstreamUrl,
  routeShape,
} from '../formats/path-and-origin.ts';
import { readSigningKeyFile } from '../formats/signing-key-file.ts';
import { parseStoreUrl } from '../formats/store-address.ts';
import { isLoopback } from '../formats/url.ts';
import { parseWebhookSecret, WEBHOOK_SECRET_RULE } from '../formats/webhook-signature.ts';
import { isWebhookUrl } from '../formats/webhook-url.ts';
import { checkCertificate, readCertificates } from '../http/tls/certificate.ts';
import type { YamlDocument } from './document.ts';
import { settingAt } from './json-schema.ts';
import { type ConfigFault, formatPath, type Path } from './problems.ts';
import type { SchemaCheck } from './schema-check.ts';
import { type Secrets, secretText, webhookSecretsOf } from './secrets.ts';

/** Shorter tokens can be guessed: they are refused if other machines can reach the admin listener. */
export const MIN_TOKEN_LENGTH = 16;

interface CheckContext {
  /** Returns the value at `path` in the file; undefined if there is none. */
  readonly given: (path: Path) => unknown;
  /** Returns the value at `path`, or its default; undefined if there is none or it breaks its own rule. */
  readonly valid: (path: Path) => unknown;
  readonly report: (path: Path, what: string) => void;
  readonly secrets: Secrets;
}

export function crossCheck(document: YamlDocument, isValid: SchemaCheck['isValid'], secrets: Secrets): ConfigFault[] {
  const problems: ConfigFault[] = [];
  const given = (path: Path) => document.at(path);
  const context: CheckContext = {
    given,
    valid(path) {
      if (!isValid(path)) return undefined;
      const value = given(path);
      return value === undefined ? settingAt(path)?.default : value;
    },
    report: (path, what) => problems.push({ path, what }),
    secrets,
  };
  checkListeners(context);
  // Node.js refuses to start a server whose headers timeout exceeds its request timeout.
  checkOrder(context, ['limits'], 'headers_timeout_ms', 'request_timeout_ms');
  for (const path of backendPaths(given([]))) checkBackend(context, path);
  checkRoutes(context);
  checkRouteBackends(context);
  checkAliases(context);
  checkUsagePath(context);
  checkFormerPlans(context);
  checkToken('admin', context);
  checkToken('check', context);
  checkCheck(context);
  checkPortal(context);
  checkStore(context);
  checkKeyHeaders(context);
  checkAssertion(context);
  checkListenTls(context);
  checkNotices(context);
  checkTracingHeaders(context);
  return problems;
}

/** Reports each entry that repeats the value of an earlier entry. */
function checkRepeats(entries: Iterable<readonly [number, string]>, report: (index: number, earlier: number) => void) {
  const first = new Map<string, number>();
  for (const [index, value] of entries) {
    const earlier = first.get(value);
    if (earlier === undefined) first.set(value, index);
    else report(index, earlier);
  }
}

/** Returns the valid values of a list as text, with their indexes. `inner`: path from an item to the value. */
function validItems({ given, valid }: CheckContext, list: Path, ...inner: string[]): [number, string][] {
  const items = given(list);
  if (!Array.isArray(items)) return [];
  return items.flatMap((_, index): [number, string][] => {
    const value = valid([...list, index, ...inner]);
    return value === undefined ? [] : [[index, String(value)]];
  });
}

function checkListeners({ given, valid, report }: CheckContext): void {
  const seen: { section: string; host: string; port: number }[] = [];
  for (const section of ['listen', 'ops', 'admin', 'portal', 'check']) {
    const isAlwaysOpen = section === 'ops' || (section === 'listen' && backendPaths(given([])).length > 0);
    if (!isAlwaysOpen && !isMapping(given([section]))) continue;
    const [host, port] = [valid([section, 'host']), valid([section, 'port'])];
    if (typeof host !== 'string' || typeof port !== 'number' || port === 0) continue;
    const same = seen.find(
      (other) => other.port === port && (other.host === host || isWildcard(other.host) || isWildcard(host)),
    );
    if (same) {
      // A default has no line, so the problem is reported for a port that the file sets.
      const isGiven = given([section, 'port']) !== undefined;
      const [at, other] = isGiven ? [section, same.section] : [same.section, section];
      report([at, 'port'], `is the port of ${other} too, on the same address; use another port`);
    }
    seen.push({ section, host, port });
  }
}

/** Reports `low` above `high`. `fallback`: a section that has the values which `section` lacks. */
function checkOrder(context: CheckContext, section: Path, low: string, high: string, fallback = section): void {
  const { given, valid, report } = context;
  const inForce = (name: string) => valid([...(given([...section, name]) === undefined ? fallback : section), name]);
  const [lower, upper] = [inForce(low), inForce(high)];
  if (typeof lower !== 'number' || typeof upper !== 'number' || lower <= upper) return;
  if (given([...section, high]) === undefined) report([...section, low], `must not be above ${high}`);
  else report([...section, high], `must not be below ${low}`);
}

/** Returns the path of each backend's section in a file. */
function backendPaths(root: unknown): Path[] {
  const { upstream, upstreams } = isMapping(root) ? root : {};
  const names = Object.keys(isMapping(upstreams) ? upstreams : {});
  return [...(isMapping(upstream) ? [['upstream']] : []), ...names.map((name) => ['upstreams', name])];
}

function checkBackend(context: CheckContext, path: Path): void {
  const { given, valid, report, secrets } = context;
  const urlsPath = [...path, 'urls'];
  const urls = validItems(context, urlsPath);
  const canonical = urls.map(([index, url]): [number, string] => [index, parseUpstreamUrl(url) ?? url]);
  checkRepeats(canonical, (index, earlier) =>
    report([...urlsPath, index], `is the same as urls[${earlier}]; keep one`),
  );
  checkOrder(context, path, 'response_timeout_ms', 'total_timeout_ms');
  checkOrder(context, path, 'max_connections_per_customer', 'max_connections');
  checkAuthorization(context, path);
  const tls = [...path, 'tls'];
  if (!isMapping(given(tls))) return;
  if (valid(urlsPath) !== undefined && !urls.some(([, url]) => url.startsWith('https:'))) {
    report(tls, 'is used only with an https:// URL in urls; remove it or change a URL');
  }
  checkClientTls(path, secrets, report);
}

/** Returns the paths of the routes, or of the default ones, with their indexes. Omits invalid ones. */
function routePaths(context: CheckContext): [number, string][] {
  const routes = context.valid(['routes']);
  return context.given(['routes']) === undefined && Array.isArray(routes)
    ? routes.map(({ path }, index) => [index, path])
    : validItems(context, ['routes'], 'path');
}

/** What a route without a key cannot have. */
const NOT_KEYLESS = [
  ['scope', 'is a scope of keys'],
  ['units', 'is taken from a quota of a customer'],
] as const;
const REMOVE_ONE = 'remove one of the two';

/** Entries with the same paths share out the methods. Parameter names do not matter: /a/{x} and /a/{y} are the same. */
function checkRoutes(context: CheckContext): void {
  const first = new Map<string, number>();
  for (const [index, path] of routePaths(context)) {
    const methods = validItems(context, ['routes', index, 'methods']).map(([, method]) => method);
    // GET includes HEAD, so HEAD in another entry would be a second one.
    if (methods.includes('GET') && !methods.includes('HEAD')) methods.push('HEAD');
    const taken = methods.find((method) => first.has(`${method} ${routeShape(path)}`));
    if (taken) {
      const earlier = `routes[${first.get(`${taken} ${routeShape(path)}`)}].path`;
      context.report(
        ['routes', index, 'path'],
        `matches the same paths as ${earlier}, which has ${taken} too; keep one`,
      );
    } else for (const method of methods) first.set(`${method} ${routeShape(path)}`, index);
    const sunset = ['routes', index, 'sunset_at'];
    const [deprecatedAt, sunsetAt] = [['routes', index, 'deprecated_at'], sunset].map(context.valid);
    if (Date.parse(String(sunsetAt)) < Date.parse(String(deprecatedAt))) {
      context.report(sunset, 'must not be before deprecated_at');
    }
    if (context.valid(['routes', index, 'key']) !== 'none') continue;
    for (const [name, what] of NOT_KEYLESS) {
      const path = ['routes', index, name];
      if (context.given(path) !== undefined)
        context.report(path, `${what}, and this route has key: none; ${REMOVE_ONE}`);
    }
  }
}

/** The timeouts of a route are judged together with those of its backend. */
function checkRouteBackends(context: CheckContext): void {
  const { given, valid, report } = context;
  const [upstream, upstreams] = [given(['upstream']), given(['upstreams'])];
  const names = Object.keys(isMapping(upstreams) ? upstreams : {});
  const timeouts = ['response_timeout_ms', 'total_timeout_ms'] as const;
  let isRequired = false;
  for (const [index] of routePaths(context)) {
    const route = ['routes', index];
    const name = valid([...route, 'upstream']);
    if (name === 'default') isRequired ||= upstream === undefined;
    else if (typeof name === 'string' && !names.includes(name)) {
      const known = names.length > 0 ? ` (${names.join(', ')})` : ', which has none';
      report([...route, 'upstream'], `must be default or a name in upstreams${known}`);
    }
    if (typeof name !== 'string' || timeouts.every((timeout) => given([...route, timeout]) === undefined)) continue;
    checkOrder(context, route, ...timeouts, name === 'default' ? ['upstream'] : ['upstreams', name]);
  }
  const isCheckedOnly = isMapping(given(['check'])) && names.length === 0;
  if (isRequired && !isCheckedOnly) {
    report(['upstream'], 'is required, unless every route names a backend of upstreams, or there is a section check');
  }
}

function checkAliases(context: CheckContext): void {
  const { given, valid, report } = context;
  const aliases = given(['aliases']);
  if (!isMapping(aliases)) return;
  const routes = routePaths(context).map(([, path]) => path);
  const names = Object.keys(aliases);
  for (const alias of names) {
    const path = ['aliases', alias];
    if (isRoutePrefix(alias, routes)) {
      report(path, 'is a prefix of a route already; an alias must be a prefix that no route has');
    }
    if (names.some((other) => other !== alias && isWithin(alias, other))) {
      report(path, 'is below another alias; aliases must not contain each other');
    }
    const target = valid(path);
    // Skipped if a route is invalid: the alias may refer to that route.
    if (typeof target === 'string' && valid(['routes']) !== undefined && !isRoutePrefix(target, routes)) {
      report(path, 'must name the prefix of a route, and no route is at or below the given one');
    }
  }
}

function checkUsagePath(context: CheckContext): void {
  const { given, valid, report } = context;
  const usagePath = valid(['usage_path']);
  const ownPaths = [usagePath, `${usagePath}/history`];
  const route = routePaths(context).find(([, path]) => ownPaths.includes(path));
  if (route === undefined) return;
  const [index] = route;
  if (given(['usage_path']) !== undefined)
    report(['usage_path'], `is the path of routes[${index}] too; choose another`);
  else {
    const advice = 'set usage_path to another path, or to null';
    report(['routes', index, 'path'], `is served by the gateway itself, by the default of usage_path; ${advice}`);
  }
}

/** Reports former plan names that another plan already has: each name must identify one plan. */
function checkFormerPlans(context: CheckContext): void {
  const plans = context.given(['plans']);
  if (!isMapping(plans)) return;
  const taken = new Map<string, string>();
  for (const name of Object.keys(plans)) {
    const list = ['plans', name, 'formerly'];
    for (const [index, former] of validItems(context, list)) {
      const other = taken.get(former);
      if (Object.hasOwn(plans, former)) {
        context.report([...list, index], 'duplicates an existing plan name; remove one of the two');
      } else if (other !== undefined) context.report([...list, index], `is given for plan ${other} already; keep one`);
      else taken.set(former, name);
    }
  }
}

function checkToken(section: 'admin' | 'check', { valid, report, secrets }: CheckContext): void {
  const token = secrets(`${section}.token`);
  if (token.kind !== 'value') return;
  if (!/^[\x21-\x7e]+$/.test(token.value)) {
    report(token.path, 'must be printable ASCII without spaces, or no request could carry it');
  }
  const host = valid([section, 'host']);
  if (typeof host === 'string' && !isLoopback(host) && token.value.length < MIN_TOKEN_LENGTH) {
    const advice = 'use a random one, such as from "openssl rand -hex 32"';
    const rule = `must have at least ${MIN_TOKEN_LENGTH} characters unless ${section}.host is a loopback address`;
    report(token.path, `${rule}, because a shorter one can be guessed; ${advice}`);
  }
}

function checkCheck({ given, valid, report, secrets }: CheckContext): void {
  if (!isMapping(given(['check']))) return;
  const host = valid(['check', 'host']);
  const hasToken = secrets('check.token').kind !== 'none';
  if (!hasToken && given(['check', 'token_file'])) {
    report(['check', 'token_file'], 'the file is empty; write the token, or leave out the setting');
  } else if (!hasToken && typeof host === 'string' && !isLoopback(host)) {
    report(['check', 'token'], 'is required, here or by token_file, unless check.host is a loopback address');
  }
  const assertion = given(['identity', 'assertion']);
  if (isMapping(assertion) && assertion.audience === undefined) {
    report(['identity', 'assertion', 'audience'], 'is required with check: its backends have no URL here');
  }
}

function checkPortal({ given, report, secrets }: CheckContext): void {
  if (given(['portal']) === undefined) return;
  if (given(['admin']) === undefined) {
    report(['portal'], 'needs the section admin: its API makes the links to the portal');
  }
  const [path, logo] = [['portal', 'logo_file'], secrets('portal.logo')];
  // A missing or unreadable file is already reported.
  if (logo.kind === 'unknown' || !given(path)) return;
  const content = logo.kind === 'value' ? logo.content : undefined;
  if (content && content.length > MAX_LOGO_BYTES) {
    report(path, `the file is larger than ${MAX_LOGO_BYTES / 1024} KiB; give a smaller image`);
  } else if (!content || logoType(content) === undefined) {
    report(path, 'must name a PNG, or an SVG in UTF-8 whose root element has xmlns="http://www.w3.org/2000/svg"');
  }
}

function checkStore({ given, valid, report, secrets }: CheckContext): void {
  const url = secrets('store.url');
  const store = given(['store']);
  if (url.kind === 'none' && (store === undefined || isMapping(store))) {
    report(
      ['store', 'url'],
      'is required, as url or url_file: redis://…, redis+sentinel://…, redis+cluster://… or sqlite:FILE',
    );
  }
  if (url.kind !== 'value') return;
  const address = parseStoreUrl(url.value);
  if (address.kind === 'invalid') {
    report(url.path, address.fault);
    return;
  }
  if (isMapping(given(['store', 'sentinel'])) && address.kind !== 'sentinel') {
    report(['store', 'sentinel'], 'is used only with redis+sentinel:// in store.url; remove it or change the URL');
  }
  if (isMapping(given(['store', 'tls']))) {
    if ('tls' in address && address.tls) checkClientTls(['store'], secrets, report);
    else report(['store', 'tls'], 'is used only with rediss://, rediss+sentinel:// or rediss+cluster:// in store.url');
  }
  // SQLite's file belongs to one process. `auto` is refused too, even on a machine where it would mean 1.
  const workers = valid(['workers']);
  if (address.kind === 'sqlite' && workers !== undefined && workers !== 1) {
    report(['workers'], 'must be 1 with the embedded store; several workers need Redis in store.url');
  }
}

function checkKeyHeaders(context: CheckContext): void {
  const path = ['auth', 'key_headers'];
  const names = validItems(context, path).map(([index, name]) => [index, comparableName(name.toLowerCase())] as const);
  checkRepeats(names, (index, earlier) =>
    context.report(
      [...path, index],
      `is the same name as key_headers[${earlier}], for servers that read _ as -; keep one`,
    ),
  );
}

function checkAuthorization({ valid, report, secrets }: CheckContext, backend: Path): void {
  const path = [...backend, 'authorization'];
  const authorization = secrets(formatPath(path));
  if (authorization.kind === 'value' && !/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(authorization.value)) {
    report(authorization.path, 'must be printable ASCII, without leading or trailing spaces');
  }
  const mode = valid([...backend, 'credentials']);
  if (mode === undefined) return;
  if (mode === 'replace' && authorization.kind === 'none') {
    report(path, 'is required, here or by authorization_file, with credentials: replace');
  }
  if (mode !== 'replace' && authorization.kind === 'value') {
    report(authorization.path, 'is used only with credentials: replace; remove it or set that');
  }
}

function checkAssertion({ given, valid, report, secrets }: CheckContext): void {
  const assertion = given(['identity', 'assertion']);
  for (const backend of isMapping(assertion) && assertion.audience === undefined ? backendPaths(given([])) : []) {
    const urls = valid([...backend, 'urls']);
    const audience = [...backend, 'audience'];
    if (!Array.isArray(urls) || !String(urls[0]).startsWith('unix:') || given(audience) !== undefined) continue;
    const rule = 'is required, here or as identity.assertion.audience';
    report(audience, `${rule}: the first of urls is a unix socket, which has no origin`);
  }
  const path = ['identity', 'assertion', 'signing_key_file'];
  const keys = secrets('identity.assertion.signing_key');
  // A missing or unreadable file is already reported.
  if (keys.kind === 'unknown' || typeof given(path) !== 'string') return;
  const signing = readSigningKeyFile(secretText(keys) ?? '');
  if (signing.kind === 'invalid') report(path, signing.fault);
}

function checkTracingHeaders({ report, secrets }: CheckContext): void {
  const headers = secrets('tracing.headers');
  if (headers.kind !== 'value' || parseHeaderLines(headers.value) !== undefined) return;
  report(headers.path, 'must name a file with lines such as "Authorization: Bearer …", each name once');
}

function checkListenTls({ given, report, secrets }: CheckContext): void {
  const tls = given(['listen', 'tls']);
  if (!isMapping(tls) || typeof tls.cert_file !== 'string' || typeof tls.key_file !== 'string') return;
  const [cert, key] = [secrets('listen.tls.cert'), secrets('listen.tls.key')];
  if (cert.kind === 'unknown' || key.kind === 'unknown') return;
  const checked = checkCertificate(secretText(cert) ?? '', secretText(key) ?? '');
  if (checked.kind === 'invalid') report(['listen', 'tls', `${checked.at}_file`], checked.fault);
}

function checkNotices(context: CheckContext): void {
  const { given, valid, report, secrets } = context;
  const list = ['notices', 'endpoints'];
  const urls = validItems(context, list, 'url');
  for (const [index, url] of urls) {
    if (valid([...list, index, 'allow_private']) !== false || isWebhookUrl(url)) continue;
    const rule = 'must be https:// and not an address of a private network';
    report([...list, index, 'url'], `${rule}, unless allow_private is true`);
  }
  checkRepeats(urls, (index, earlier) => report([...list, index, 'url'], `is that of endpoints[${earlier}] too`));
  const endpoints = given(list);
  for (const index of Array.isArray(endpoints) ? endpoints.keys() : []) {
    const path = [...list, index, 'secret'];
    const secret = secrets(formatPath(path));
    if (secret.kind === 'none') report(path, 'is required, as secret or secret_file');
    if (secret.kind !== 'value') continue;
    const lines = webhookSecretsOf(secret.value);
    if (lines.length > 2) report(secret.path, 'must have at most two lines: the new secret and the old one');
    if (lines.some((line) => parseWebhookSecret(line) === undefined)) report(secret.path, WEBHOOK_SECRET_RULE);
  }
  for (const name of ['levels', 'key_expiry_days']) {
    const path = ['notices', name];
    checkRepeats(validItems(context, path), (index) => report([...path, index], 'is listed already; keep one'));
  }
}

/** Checks the CAs and the client certificate for connections to the store or the upstream. */
function checkClientTls(section: Path, secrets: Secrets, report: CheckContext['report']): void {
  const secretOf = (name: string) => secrets(formatPath([...section, 'tls', name]));
  const [ca, cert, key] = [secretOf('ca'), secretOf('cert'), secretOf('key')];
  if (ca.kind === 'value' && readCertificates(ca.value) === undefined) {
    report(ca.path, 'must name a file with certificates in PEM (BEGIN CERTIFICATE)');
  }
  const needsBoth = 'a client certificate needs both';
  if (cert.kind === 'value' && key.kind === 'none') report(cert.path, `is given without key_file; ${needsBoth}`);
  if (key.kind === 'value' && cert.kind === 'none') report(key.path, `is given without cert_file; ${needsBoth}`);
  if (cert.kind !== 'value' || key.kind !== 'value') return;
  const checked = checkCertificate(cert.value, key.value);
  if (checked.kind === 'invalid') report([...section, 'tls', `${checked.at}_file`], checked.fault);
}
