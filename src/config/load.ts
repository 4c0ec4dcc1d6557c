import { createHash } from 'node:crypto';
import { dirname, resolve } from 'node:path';
import { parseStoreUrl } from '../store/store-address.ts';
import type { AdminConfig, Config, IdentityConfig, NoticesConfig, StoreConfig, UpstreamConfig } from './config.ts';
import { type ConfigSource, digestOfSource, readConfigFile } from './config-files.ts';
import { crossCheck } from './cross-checks.ts';
import { disclose, withoutUserInfo } from './disclose.ts';
import { ConfigDocument, isMapping, UNREADABLE } from './document.ts';
import type { Environment } from './environment.ts';
import { isRoutePrefix, parseUpstreamUrl } from './formats.ts';
import { deepFreeze } from './freeze.ts';
import { settingAt } from './json-schema.ts';
import type { PreviewScope } from './preview-scope.ts';
import { ConfigError, formatPath, formatProblems, type Path, type Problem } from './problems.ts';
import type { FileValues } from './schema.ts';
import { checkSchema } from './schema-check.ts';
import { readSecrets, type Secrets, secretText, webhookSecretsOf } from './secrets.ts';
import { readSigningKeys } from './signing-keys.ts';
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
  readonly folder?: string;
  /** Limits the variables and files that the config may use; by default the whole environment and any file. */
  readonly scope?: PreviewScope;
}

/** Checks config file content like {@link loadConfig}. Reads the files that the content names. */
export async function parseConfig(
  file: string,
  content: Uint8Array,
  env: Environment,
  { folder = dirname(resolve(file)), scope }: ParseOptions = {},
): Promise<Config> {
  const document = new ConfigDocument(decode(file, content), {
    environment: env,
    isText,
    guard: scope?.substitution,
  });
  const located = (problems: readonly Problem[]) =>
    problems.map((problem) => ({ line: document.lineOf(problem.path), ...problem }));
  const { root } = document;
  if (root === UNREADABLE) throw ConfigError.of(file, located(document.problems));
  if (!isMapping(root)) {
    const what = `${root === null ? 'is empty' : 'is not a mapping'}; it must have sections such as store: and upstream:`;
    throw ConfigError.of(file, located([...document.problems, { path: [], what }]));
  }
  const checked = checkSchema(document);
  const { secrets, reads, problems: secretProblems } = await readSecrets(document, folder, scope?.namedFile);
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
  return deepFreeze({
    file,
    source,
    warnings: formatProblems(file, located(findWarnings(document, values, secrets)), 'warnings'),
    expressions: document.expressions,
    limitOrigins: limitOrigins(file, document, values),
    disclosed: disclose(values),
    ...assemble(folder, values, secrets),
  });
}

/** A setting that may be null is not only text. */
function isText(path: Path): boolean {
  const setting = settingAt(path);
  return setting?.type === 'string' && setting.enum === undefined;
}

function decode(file: string, content: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(content);
  } catch {
    throw ConfigError.of(file, [{ line: 1, path: [], what: 'is not UTF-8 text' }]);
  }
}

/** Returns where the limit of each plan and override is set: `file:line`, or `default of …`. */
function limitOrigins(file: string, document: ConfigDocument, values: FileValues): Config['limitOrigins'] {
  const origin = (path: Path) =>
    document.at(path) === undefined ? `default of ${formatPath(path)}` : `${file}:${document.lineOf(path)}`;
  const originsOf = (section: 'plans' | 'overrides') =>
    new Map(Object.keys(values[section]).map((name) => [name, origin([section, name, 'requests_per_hour'])]));
  const plans = originsOf('plans');
  for (const [name, { formerly = [] }] of Object.entries(values.plans)) {
    for (const former of formerly) plans.set(former, plans.get(name) ?? '');
  }
  return { plans, overrides: originsOf('overrides') };
}

/** Members that `assemble` does not set; they are not part of the hash. */
type UnhashedMembers = 'file' | 'source' | 'warnings' | 'expressions' | 'limitOrigins' | 'disclosed';

function assemble(folder: string, values: FileValues, secrets: Secrets): Omit<Config, UnhashedMembers> {
  const { listen, ops, admin, upstream, limits, shutdown } = values;
  const authorization = secretText(secrets['upstream.authorization']);
  const token = secretText(secrets['admin.token']);
  const usagePath = values.usage_path ?? undefined;
  const documentationUrl = values.documentation_url;
  const effective: Omit<Config, UnhashedMembers | 'hash'> = {
    listen: {
      host: listen.host,
      port: listen.port,
      trustedProxies: listen.trusted_proxies,
      trustForwardedHost: listen.trust_forwarded_host,
      keepAliveTimeoutMs: listen.keep_alive_timeout_ms,
      ...(listen.tls && {
        tls: { certFile: resolve(folder, listen.tls.cert_file), keyFile: resolve(folder, listen.tls.key_file) },
      }),
    },
    ops,
    ...(admin && { admin: { ...adminConfig(admin), ...(token !== undefined && { token }) } }),
    workers: values.workers,
    store: storeConfig(values, secrets, folder),
    upstream: {
      urls: upstreamUrls(upstream.urls),
      balance: upstream.balance,
      connectTimeoutMs: upstream.connect_timeout_ms,
      responseTimeoutMs: upstream.response_timeout_ms,
      totalTimeoutMs: upstream.total_timeout_ms,
      maxHeaderBytes: upstream.response_header_bytes,
      maxConnections: upstream.max_connections,
      maxConnectionsPerCustomer: upstream.max_connections_per_customer ?? Math.ceil(upstream.max_connections / 4),
      ...(upstream.health_check && {
        healthCheck: { path: upstream.health_check.path, intervalMs: upstream.health_check.interval_ms },
      }),
      ...(upstream.tls && { tls: clientTls('upstream', secrets) }),
      credentials: upstream.credentials,
      ...(authorization !== undefined && { authorization }),
      preserveHost: upstream.preserve_host,
    },
    routes: values.routes.map(({ path, methods }) => ({
      path,
      methods: methods.includes('GET') ? ['GET', 'HEAD'] : ['HEAD'],
    })),
    aliases: aliasesOf(values),
    ...(usagePath !== undefined && { usagePath }),
    ...(values.usage && { usage: { hoursDays: values.usage.hours_days, days: values.usage.days } }),
    ...(values.notices && { notices: noticesConfig(values.notices, secrets) }),
    ...(documentationUrl !== undefined && { documentationUrl }),
    plans: plansOf(values),
    formerPlans: formerPlansOf(values),
    overrides: overridesOf(values),
    auth: {
      realm: values.auth.realm,
      cacheMs: values.auth.cache_seconds * 1000,
      cacheEntries: values.auth.cache_entries,
      staleIfErrorMs: values.auth.stale_if_error_seconds * 1000,
      failuresPerMinute: values.auth.failures_per_minute,
      browserKeys: values.auth.browser_keys,
    },
    identity: identityConfig(values, secrets),
    limits: {
      headerBytes: limits.header_bytes,
      headerCount: limits.header_count,
      targetBytes: limits.target_bytes,
      connections: limits.connections,
      inFlight: limits.in_flight,
      pipelined: limits.pipelined,
      headersTimeoutMs: limits.headers_timeout_ms,
      requestTimeoutMs: limits.request_timeout_ms,
      responseStallTimeoutMs: limits.answer_stall_timeout_ms,
    },
    shutdown: { notReadyMs: shutdown.not_ready_ms, drainMs: shutdown.drain_ms },
    logging: values.logging,
  };
  return { hash: hashOf(effective), ...effective };
}

function adminConfig({ host, port, jwt, allowed_hosts: names }: NonNullable<FileValues['admin']>): AdminConfig {
  return {
    host,
    port,
    ...(names.length > 0 && { allowedHosts: names.map((name) => name.toLowerCase()) }),
    ...(jwt && { jwt: { jwksUrl: jwt.jwks_url, issuer: jwt.issuer, audience: jwt.audience } }),
  };
}

function identityConfig({ identity }: FileValues, secrets: Secrets): IdentityConfig {
  const { headers, assertion } = identity;
  if (!assertion) return { headers };
  const signing = readSigningKeys(secretText(secrets['identity.assertion.signing_key']) ?? '');
  if (signing.kind === 'invalid') throw new Error('the signing keys were not checked');
  const { issuer, ttl_seconds: ttlSeconds } = assertion;
  return { headers, assertion: { issuer, ttlSeconds, signingKeys: signing.keys } };
}

function noticesConfig(notices: NonNullable<FileValues['notices']>, { noticeEndpoints }: Secrets): NoticesConfig {
  return {
    endpoints: notices.endpoints.map(({ url, allow_private: allowPrivate }, index) => ({
      url,
      secrets: webhookSecretsOf(secretText(noticeEndpoints[index] ?? { kind: 'none' }) ?? ''),
      allowPrivate,
    })),
    levels: notices.levels.toSorted((a, b) => a - b),
    keyExpiryDays: notices.key_expiry_days.toSorted((a, b) => a - b),
  };
}

function storeConfig({ store }: FileValues, secrets: Secrets, folder: string): StoreConfig {
  const given = secretText(secrets['store.url']) ?? '';
  const address = parseStoreUrl(given);
  if (address.kind === 'invalid') throw new Error('the store URL was not checked');
  const url = address.kind === 'sqlite' ? `sqlite:${resolve(folder, address.file)}` : given;
  const username = store.sentinel?.username;
  const password = secretText(secrets['store.sentinel.password']);
  return {
    url,
    ...(store.tls && { tls: clientTls('store', secrets) }),
    ...(store.sentinel && { sentinel: { ...(username && { username }), ...(password && { password }) } }),
    keyPrefix: store.key_prefix,
    timeoutMs: store.timeout_ms,
    onError: store.on_error,
  };
}

function clientTls(section: 'store' | 'upstream', secrets: Secrets): NonNullable<UpstreamConfig['tls']> {
  const ca = secretText(secrets[`${section}.tls.ca`]);
  const cert = secretText(secrets[`${section}.tls.cert`]);
  const key = secretText(secrets[`${section}.tls.key`]);
  return { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
}

function upstreamUrls(texts: readonly string[]): UpstreamConfig['urls'] {
  const [first, ...others] = texts.flatMap((text) => parseUpstreamUrl(text) ?? []);
  if (first === undefined) throw new Error('the upstream URLs were not checked');
  return [first, ...others];
}

/** Drops the default alias if it does not fit the routes; configured aliases are already checked against them. */
function aliasesOf({ aliases, routes }: FileValues): Config['aliases'] {
  const paths = routes.map(({ path }) => path);
  const fitting = Object.entries(aliases).filter(
    ([alias, target]) => !isRoutePrefix(alias, paths) && isRoutePrefix(target, paths),
  );
  return Object.assign(Object.create(null), Object.fromEntries(fitting));
}

function plansOf({ plans }: FileValues): Config['plans'] {
  return new Map(
    Object.entries(plans).map(([name, values]) => {
      const {
        requests_per_hour: requestsPerHour,
        burst_per_second: burst,
        max_concurrent: maxConcurrent,
        shadow,
      } = values;
      const plan = {
        requestsPerHour,
        ...(burst !== undefined && { burstPerSecond: burst }),
        ...(maxConcurrent !== undefined && { maxConcurrent }),
        ...(shadow && { shadow: { requestsPerHour: shadow.requests_per_hour } }),
      };
      return [name, plan];
    }),
  );
}

function formerPlansOf({ plans }: FileValues): Config['formerPlans'] {
  return new Map(
    Object.entries(plans).flatMap(([name, { formerly = [] }]) => formerly.map((former) => [former, name])),
  );
}

function overridesOf({ overrides }: FileValues): Config['overrides'] {
  return new Map(Object.entries(overrides).map(([id, limit]) => [id, { requestsPerHour: limit.requests_per_hour }]));
}

/** Names of members that hold secrets, at any depth. */
const SECRET_MEMBERS: ReadonlySet<string> = new Set([
  'token',
  'authorization',
  'password',
  'key',
  'signingKeys',
  'secrets',
]);

function withoutSecrets(key: string, value: unknown): unknown {
  if (SECRET_MEMBERS.has(key)) return 'set';
  if (key === 'url' && typeof value === 'string') return withoutUserInfo(value);
  return value instanceof Map ? [...value].sort() : value;
}

function hashOf(effective: object): string {
  return createHash('sha256').update(JSON.stringify(effective, withoutSecrets)).digest('hex').slice(0, 12);
}
