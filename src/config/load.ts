import { createHash } from 'node:crypto';
import { dirname, resolve } from 'node:path';
import { isMapping } from '../base/mapping.ts';
import { logoType } from '../formats/logo.ts';
import { isRoutePrefix, parseHeaderLines, parseOrigin, parseUpstreamUrl } from '../formats/path-and-origin.ts';
import { readSigningKeyFile } from '../formats/signing-key-file.ts';
import { parseStoreUrl } from '../formats/store-address.ts';
import type {
  AdminConfig,
  BackendConfig,
  CheckConfig,
  Config,
  ConfigSource,
  NoticesConfig,
  PortalConfig,
  Section,
  TracingConfig,
} from './config.ts';
import { disclosedFile } from './config-changes.ts';
import { digestOfSource, readConfigFile } from './config-files.ts';
import { crossCheck } from './cross-checks.ts';
import { disclose, withoutUserInfo } from './disclose.ts';
import { UNREADABLE, YamlDocument } from './document.ts';
import type { Environment } from './environment.ts';
import { SECRET_MEMBERS } from './json-schema.ts';
import type { PreviewScope } from './preview-scope.ts';
import { ConfigError, type ConfigFault, formatPath, formatProblems, type Path } from './problems.ts';
import type { FileValues } from './schema.ts';
import { checkSchema } from './schema-check.ts';
import { readSecrets, type Secrets, secretText, webhookSecretsOf } from './secrets.ts';
import { findWarnings } from './warnings.ts';

/**
 * Reads and checks a configuration file. Rejects with {@link ConfigError}, which lists the problems found. Problems
 * show `file` as given here. Relative file names in the configuration are relative to the folder of `file`.
 */
export async function loadConfig(file: string, env: Environment): Promise<Config> {
  return await parseConfig(file, await readConfigFile(file), env);
}

interface ParseOptions {
  /** Base of relative file names; by default the folder of the file. */
  readonly folder?: string | undefined;
  /** Limits the variables and files that the config may use; by default the whole environment and any file. */
  readonly scope?: PreviewScope | undefined;
}

/** Checks config file content like {@link loadConfig}. Reads the files that the content names. */
export async function parseConfig(
  file: string,
  content: Uint8Array,
  env: Environment,
  { folder = dirname(resolve(file)), scope }: ParseOptions = {},
): Promise<Config> {
  const document = new YamlDocument(decode(file, content), env, { scope });
  const located = (problems: readonly ConfigFault[]) =>
    problems.map((problem) => ({ line: document.lineOf(problem.path), ...problem }));
  const { root } = document;
  if (root === UNREADABLE) throw ConfigError.of(file, located(document.problems));
  if (!isMapping(root)) {
    const what = `${root === null ? 'is empty' : 'is not a mapping'}; it must have sections such as store: and upstream:`;
    throw ConfigError.of(file, located([...document.problems, { path: [], what }]));
  }
  const checked = checkSchema(document);
  const { secrets, reads, problems: secretProblems } = await readSecrets(document, folder, scope);
  const source: ConfigSource = {
    namedFiles: reads.map(({ setting, file }) => ({ setting, file })),
    digest: digestOfSource(
      content,
      reads.map((read) => read.content),
    ),
  };
  const crossProblems = crossCheck(document, checked.isValid, secrets);
  const problems = [...document.problems, ...checked.problems, ...secretProblems, ...crossProblems];
  if (!checked.values || problems.length > 0) throw ConfigError.of(file, located(problems), source);
  const { values } = checked;
  const effective = effectiveValues(values, secrets, folder);
  const { upstream, upstreams } = effective;
  const shown = { disclosed: disclose(values), expressions: document.expressions };
  return deepFreeze({
    file,
    source,
    warnings: formatProblems(file, located(findWarnings(document, values, secrets)), 'warnings'),
    limitOrigins: limitOrigins(file, document, values),
    ...shown,
    disclosedFile: disclosedFile(shown, root),
    hash: hashOf(effective),
    ...effective,
    backends: new Map([...(upstream ? ([['default', upstream]] as const) : []), ...upstreams]),
  });
}

function decode(file: string, content: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(content);
  } catch {
    throw ConfigError.of(file, [{ line: 1, path: [], what: 'is not UTF-8 text' }]);
  }
}

/** Returns where the limit of each plan and override is set: `file:line`, or `default of …`. */
function limitOrigins(file: string, document: YamlDocument, values: FileValues): Config['limitOrigins'] {
  const origin = (path: Path) =>
    document.at(path) === undefined ? `default of ${formatPath(path)}` : `${file}:${document.lineOf(path)}`;
  const originsOf = (section: 'plans' | 'overrides', ...path: string[]) => {
    const origins = new Map([...values[section].keys()].map((name) => [name, origin([section, name, ...path])]));
    if (section === 'overrides') return origins;
    for (const [name, { formerly = [] }] of values.plans) {
      for (const former of formerly) origins.set(former, origins.get(name) ?? '');
    }
    return origins;
  };
  return {
    plans: originsOf('plans', 'requests_per_hour'),
    overrides: originsOf('overrides', 'requests_per_hour'),
    periods: { plans: originsOf('plans', 'period', 'requests'), overrides: originsOf('overrides', 'period_requests') },
  };
}

/** Returns the values that the hash is made of. */
function effectiveValues(values: FileValues, secrets: Secrets, folder: string) {
  const {
    admin,
    check,
    identity,
    listen,
    notices,
    plans,
    portal,
    requests,
    store,
    tracing,
    upstream,
    upstreams,
    usage,
    usagePath,
  } = values;
  return {
    ...values,
    listen: {
      ...listen,
      ...(listen.tls && {
        tls: { certFile: resolve(folder, listen.tls.certFile), keyFile: resolve(folder, listen.tls.keyFile) },
      }),
    },
    admin: admin && adminConfig(admin, secrets),
    check: check && checkConfig(check, values, secrets),
    portal: portal && portalConfig(portal, secrets),
    store: storeConfig(store, secrets, folder),
    upstream: upstream && backendConfig(['upstream'], upstream, secrets),
    upstreams: new Map(
      [...upstreams].map(([name, section]) => [name, backendConfig(['upstreams', name], section, secrets)]),
    ),
    routes: values.routes.map(({ methods, maxBodyBytes = values.limits.bodyBytes, ...route }) => ({
      ...route,
      methods: [...new Set(methods.includes('GET') ? ['GET', 'HEAD', ...methods] : methods)],
      maxBodyBytes,
    })),
    aliases: aliasesOf(values),
    usagePath: usagePath ?? undefined,
    usage: usage ?? undefined,
    requests: requests ?? undefined,
    notices: notices && noticesConfig(notices, secrets),
    tracing: tracing && tracingConfig(tracing, secrets),
    formerPlans: new Map([...plans].flatMap(([name, { formerly = [] }]) => formerly.map((former) => [former, name]))),
    identity: identityConfig(identity, secrets),
  };
}

function adminConfig({ tokenFile: _, token: __, ...admin }: Section<'admin'>, secrets: Secrets): AdminConfig {
  const token = secretText(secrets('admin.token'));
  const allowedHosts = admin.allowedHosts.map((name) => name.toLowerCase());
  return { ...admin, allowedHosts, ...(token !== undefined && { token }) };
}

function checkConfig(
  { tokenFile: _, token: __, ...check }: Section<'check'>,
  { listen }: FileValues,
  secrets: Secrets,
): CheckConfig {
  const token = secretText(secrets('check.token'));
  const trustedProxies = check.trustedProxies ?? listen.trustedProxies;
  return { ...check, trustedProxies, ...(token !== undefined && { token }) };
}

function portalConfig({ logoFile: _, ...portal }: Section<'portal'>, secrets: Secrets): PortalConfig {
  const apiUrl = parseUpstreamUrl(portal.apiUrl ?? '');
  const logo = secrets('portal.logo');
  const content = logo.kind === 'value' ? logo.content : undefined;
  const type = content && logoType(content);
  return {
    ...portal,
    publicUrl: parseOrigin(portal.publicUrl) ?? portal.publicUrl,
    ...(apiUrl !== undefined && { apiUrl }),
    ...(type && { logo: { type, base64: content.toString('base64') } }),
  };
}

function backendConfig(path: Path, section: Section<'upstream'>, secrets: Secrets): BackendConfig {
  const { authorization: _, authorizationFile: __, tls, ...upstream } = section;
  const [first, ...others] = upstream.urls.flatMap((text) => parseUpstreamUrl(text) ?? []);
  if (first === undefined) throw new Error('the upstream URLs were not checked');
  const authorization = secretText(secrets(formatPath([...path, 'authorization'])));
  return {
    ...upstream,
    urls: [first, ...others],
    maxConnectionsPerCustomer: upstream.maxConnectionsPerCustomer ?? Math.ceil(upstream.maxConnections / 4),
    ...(tls && { tls: clientTls(path, secrets) }),
    ...(authorization !== undefined && { authorization }),
  };
}

function identityConfig({ headers, assertion }: Section<'identity'>, secrets: Secrets): Config['identity'] {
  if (!assertion) return { headers };
  const signing = readSigningKeyFile(secretText(secrets('identity.assertion.signing_key')) ?? '');
  if (signing.kind === 'invalid') throw new Error('the signing keys were not checked');
  const { signingKeyFile: _, ...settings } = assertion;
  return { headers, assertion: { ...settings, signingKeys: signing.keys } };
}

function noticesConfig(notices: Section<'notices'>, secrets: Secrets): NoticesConfig {
  return {
    endpoints: notices.endpoints.map(({ url, allowPrivate }, index) => ({
      url,
      secrets: webhookSecretsOf(secretText(secrets(`notices.endpoints[${index}].secret`)) ?? ''),
      allowPrivate,
    })),
    levels: notices.levels.toSorted((a, b) => a - b),
    keyExpiryDays: notices.keyExpiryDays.toSorted((a, b) => a - b),
  };
}

function tracingConfig({ headersFile: _, ...tracing }: Section<'tracing'>, secrets: Secrets): TracingConfig {
  const lines = parseHeaderLines(secretText(secrets('tracing.headers')) ?? '');
  if (lines === undefined) throw new Error('the headers for the collector were not checked');
  return { ...tracing, exportHeaders: Object.fromEntries(lines) };
}

function storeConfig(section: Section<'store'>, secrets: Secrets, folder: string): Config['store'] {
  const { url: _, urlFile: __, tls, sentinel, ...store } = section;
  const given = secretText(secrets('store.url')) ?? '';
  const address = parseStoreUrl(given);
  if (address.kind === 'invalid') throw new Error('the store URL was not checked');
  const username = sentinel?.username;
  const password = secretText(secrets('store.sentinel.password'));
  return {
    ...store,
    url: address.kind === 'sqlite' ? `sqlite:${resolve(folder, address.file)}` : given,
    ...(tls && { tls: clientTls(['store'], secrets) }),
    ...(sentinel && { sentinel: { ...(username && { username }), ...(password && { password }) } }),
  };
}

function clientTls(section: Path, secrets: Secrets): NonNullable<Config['store']['tls']> {
  const [ca, cert, key] = ['ca', 'cert', 'key'].map((name) =>
    secretText(secrets(formatPath([...section, 'tls', name]))),
  );
  return { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
}

/** Drops the default alias if it does not fit the routes; configured aliases are already checked against them. */
function aliasesOf({ aliases, routes }: FileValues): Config['aliases'] {
  const paths = routes.map(({ path }) => path);
  return new Map(
    [...aliases].filter(([alias, target]) => !isRoutePrefix(alias, paths) && isRoutePrefix(target, paths)),
  );
}

function withoutSecrets(key: string, value: unknown): unknown {
  if (SECRET_MEMBERS.has(key)) return 'set';
  if (key === 'url' && typeof value === 'string') return withoutUserInfo(value);
  return value instanceof Map ? [...value].sort() : value;
}

function hashOf(effective: object): string {
  return createHash('sha256').update(JSON.stringify(effective, withoutSecrets)).digest('hex').slice(0, 12);
}

function refuse(): never {
  throw new TypeError('the configuration is frozen');
}

/** Freezes plain objects, arrays and Maps recursively; returns the same value. Structured cloning loses that. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  const children = value instanceof Map ? [...value.values()] : Object.values(value);
  // Object.freeze does not protect the entries of a Map.
  if (value instanceof Map) Object.assign(value, { set: refuse, delete: refuse, clear: refuse });
  Object.freeze(value);
  for (const child of children) deepFreeze(child);
  return value;
}
