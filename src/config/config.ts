/**
 * The effective configuration as the rest of the gateway sees it: checked, complete and deeply frozen. Times are in
 * milliseconds where a name ends in `Ms`, sizes in bytes where it ends in `Bytes`.
 */

import type { UsageRetention } from '../store/usage-history.ts';
import type { ConfigSource } from './config-files.ts';
import type { FileValues } from './schema.ts';

export const LOG_FORMATS = ['auto', 'json', 'pretty'] as const;

export interface Config {
  /** The file name as given to the loader. */
  readonly file: string;
  readonly source: ConfigSource;
  /** What may not work or is dangerous, each as `file:line: warning: path: what may go wrong`. */
  readonly warnings: readonly string[];
  /** Scalars of the file that contain `${NAME}`, as written, keyed by `pathKey`. */
  readonly expressions: ReadonlyMap<string, string>;
  /**
   * First 12 hex digits of the SHA-256 of the effective values. Excludes secrets, because the hash is public and would
   * allow guessing them offline: changing only a secret does not change the hash.
   */
  readonly hash: string;
  /**
   * Where the limit of each plan (also under its former names) and of each override is set: `file:line`, or
   * `default of …` if it is not in the file.
   */
  readonly limitOrigins: {
    readonly plans: ReadonlyMap<string, string>;
    readonly overrides: ReadonlyMap<string, string>;
  };
  /** All values by their names in the file, without secrets. */
  readonly disclosed: Disclosed;
  readonly listen: ListenConfig;
  readonly ops: { readonly host: string; readonly port: number };
  /** Absent: no admin API. */
  readonly admin?: AdminConfig;
  /** Worker processes that serve requests; `auto`: one per available core. 1: a single process does everything. */
  readonly workers: number | 'auto';
  readonly store: StoreConfig;
  readonly upstream: UpstreamConfig;
  readonly routes: readonly RouteConfig[];
  /** Maps an alias prefix to a route prefix. Has no prototype, so that any lookup is safe. */
  readonly aliases: Readonly<Record<string, string>>;
  /** Canonical path where a client reads its own quota; absent: not offered. */
  readonly usagePath?: string;
  /** How long the usage history is kept; absent: there is none. */
  readonly usage?: UsageRetention;
  /** Absent: no notices. */
  readonly notices?: NoticesConfig;
  /** Page that explains a problem to people; `{code}` is replaced by its code. Absent: problems link to no page. */
  readonly documentationUrl?: string;
  readonly plans: ReadonlyMap<string, PlanConfig>;
  /** Former plan names, each with the current name of its plan. */
  readonly formerPlans: ReadonlyMap<string, string>;
  readonly overrides: ReadonlyMap<string, { readonly requestsPerHour: number }>;
  readonly auth: AuthConfig;
  readonly identity: IdentityConfig;
  readonly limits: LimitsConfig;
  readonly shutdown: { readonly notReadyMs: number; readonly drainMs: number };
  readonly logging: Readonly<FileValues['logging']>;
}

/** A value of the config file, as JSON. */
export type Disclosed =
  | string
  | number
  | boolean
  | null
  | readonly Disclosed[]
  | { readonly [name: string]: Disclosed };

interface ListenConfig {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Addresses or CIDR blocks. */
  readonly trustedProxies: readonly string[];
  readonly trustForwardedHost: boolean;
  readonly keepAliveTimeoutMs: number;
  /** Absolute file names. Absent: no TLS. */
  readonly tls?: { readonly certFile: string; readonly keyFile: string };
}

export interface AdminConfig {
  readonly host: string;
  readonly port: number;
  /** Host names accepted besides those of the listener's own address, in lower case; absent: none. */
  readonly allowedHosts?: readonly string[];
  /** The admin token, never empty; absent: no token is accepted. */
  readonly token?: string;
  /** Absent: no JWT is accepted. */
  readonly jwt?: AdminJwtConfig;
}

export interface AdminJwtConfig {
  /** `https://…`, or `http://…` on a loopback address. */
  readonly jwksUrl: string;
  readonly issuer: string;
  readonly audience: string;
}

export interface StoreConfig {
  /** In the form that src/store/store-address.ts parses; a file's path is absolute. Secret: may contain a password. */
  readonly url: string;
  /** PEM. Only with TLS. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string };
  /** Credentials for the sentinels; present only with sentinels. */
  readonly sentinel?: { readonly username?: string; readonly password?: string };
  readonly keyPrefix: string;
  readonly timeoutMs: number;
  /** How quotas are decided while the store is unavailable. */
  readonly onError: 'local' | 'deny' | 'allow';
}

export interface UpstreamConfig {
  /** Distinct. Each is an origin (default port omitted) and a base path, without "/" at the end. */
  readonly urls: readonly [string, ...string[]];
  readonly balance: 'least_loaded' | 'round_robin';
  readonly connectTimeoutMs: number;
  readonly responseTimeoutMs: number;
  readonly totalTimeoutMs: number;
  /** Limit for the head of a response, and for its trailer section. */
  readonly maxHeaderBytes: number;
  /** Open connections to each server of the backend. */
  readonly maxConnections: number;
  /** At most `maxConnections`. */
  readonly maxConnectionsPerCustomer: number;
  /** Absent: no health checks. */
  readonly healthCheck?: { readonly path: string; readonly intervalMs: number };
  /** PEM: the CAs that must sign the backend's certificate, and the gateway's client certificate with its key. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string };
  readonly credentials: 'strip' | 'forward' | 'replace';
  /** A whole Authorization header value; present exactly when `credentials` is `replace`. */
  readonly authorization?: string;
  readonly preserveHost: boolean;
}

interface RouteConfig {
  /** Each segment is a literal or one `{name}` parameter. */
  readonly path: string;
  readonly methods: readonly ('GET' | 'HEAD')[];
}

interface PlanConfig {
  readonly requestsPerHour: number | 'custom';
  /** Requests within any second, on each instance. */
  readonly burstPerSecond?: number;
  readonly maxConcurrent?: number;
  /** A limit that is reported and never enforced. */
  readonly shadow?: { readonly requestsPerHour: number };
}

interface AuthConfig {
  readonly realm: string;
  /** How long a key or customer is served from the cache. */
  readonly cacheMs: number;
  /** Maximum number of keys, and of customers, kept in memory. */
  readonly cacheEntries: number;
  /** How long a known key keeps working while the store is unavailable. */
  readonly staleIfErrorMs: number;
  /** Invalid keys tolerated from one address block, over all workers of this gateway; further ones get 429. */
  readonly failuresPerMinute: number;
  /** What happens to a valid key that a browser sends. */
  readonly browserKeys: 'allow' | 'warn' | 'reject';
}

export interface IdentityConfig {
  readonly headers: boolean;
  /** Absent: the backend gets no assertion. */
  readonly assertion?: AssertionConfig;
}

interface AssertionConfig {
  readonly issuer: string;
  readonly ttlSeconds: number;
  /** Ed25519 keys in PEM, all published. The first, private in PKCS#8, signs; the others may be private or public. */
  readonly signingKeys: readonly string[];
}

export interface NoticesConfig {
  /** Empty in workers, which send nothing. */
  readonly endpoints: readonly NoticeEndpointConfig[];
  /** Percentages of the hourly limit, ascending and below 100. */
  readonly levels: readonly number[];
  /** Days before the expiry of a key, ascending. */
  readonly keyExpiryDays: readonly number[];
}

export interface NoticeEndpointConfig {
  readonly url: string;
  /** `whsec_…`: one, or two while the secret is rotated. */
  readonly secrets: readonly string[];
  readonly allowPrivate: boolean;
}

interface LimitsConfig {
  readonly headerBytes: number;
  readonly headerCount: number;
  readonly targetBytes: number;
  readonly connections: number;
  readonly inFlight: number;
  /** Requests of one connection that are processed concurrently. */
  readonly pipelined: number;
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly responseStallTimeoutMs: number;
}
