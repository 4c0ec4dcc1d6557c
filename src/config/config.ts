/**
 * The effective configuration as the rest of the gateway sees it: checked, complete and deeply frozen. Times are in
 * milliseconds where a name ends in `Ms`, sizes in bytes where it ends in `Bytes`.
 */

import type { ConfigSource } from './source.ts';

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;
export const LOG_FORMATS = ['auto', 'json', 'pretty'] as const;
export const ACCESS_LOG_MODES = ['all', 'errors', 'off'] as const;
export const CREDENTIAL_MODES = ['strip', 'forward', 'replace'] as const;
export const BALANCE_MODES = ['least_loaded', 'round_robin'] as const;
export const STORE_ERROR_MODES = ['local', 'deny', 'allow'] as const;
export const BROWSER_KEY_MODES = ['allow', 'warn', 'reject'] as const;
export const ROUTE_METHODS = ['GET', 'HEAD'] as const;

export interface Config {
  /** As the caller named it. */
  readonly file: string;
  readonly source: ConfigSource;
  /** What may not work or is dangerous, each as `file:line: warning: path: what may go wrong`. */
  readonly warnings: readonly string[];
  /** Scalars of the file that contain `${NAME}`, as written, by their place as `pathKey` has it. */
  readonly expressions: ReadonlyMap<string, string>;
  /**
   * First 12 hex digits of the SHA-256 of the effective values. Secrets are left out, because the hash is public and
   * would let anybody try guesses offline: a changed secret alone doesn't change it.
   */
  readonly hash: string;
  /**
   * Where the limit of each plan (by its former names too) and of each override stands: `file:line`, or in words where
   * nobody wrote it.
   */
  readonly limitOrigins: {
    readonly plans: ReadonlyMap<string, string>;
    readonly overrides: ReadonlyMap<string, string>;
  };
  /** All of the values by the names of the file, without secrets. */
  readonly disclosed: Disclosed;
  readonly listen: ListenConfig;
  readonly ops: { readonly host: string; readonly port: number };
  /** Left out: no admin API. */
  readonly admin?: AdminConfig;
  /** Processes that serve callers; `auto`: one for each core that is available. 1: all is one process. */
  readonly workers: number | 'auto';
  readonly store: StoreConfig;
  readonly upstream: UpstreamConfig;
  readonly routes: readonly RouteConfig[];
  /** Prefix to prefix. Without a prototype, so that any lookup is safe. */
  readonly aliases: Readonly<Record<string, string>>;
  /** The caller's own quota, canonical; undefined: not offered. */
  readonly usagePath?: string;
  /** For people who read a refusal; `{code}` stands for its code. Left out: refusals have no such member. */
  readonly documentationUrl?: string;
  readonly plans: ReadonlyMap<string, PlanConfig>;
  /** Names that plans had before, each with the present name of its plan. */
  readonly formerPlans: ReadonlyMap<string, string>;
  readonly overrides: ReadonlyMap<string, { readonly requestsPerHour: number }>;
  readonly auth: AuthConfig;
  readonly identity: IdentityConfig;
  readonly limits: LimitsConfig;
  readonly shutdown: { readonly notReadyMs: number; readonly drainMs: number };
  readonly logging: {
    readonly level: (typeof LOG_LEVELS)[number];
    readonly access: (typeof ACCESS_LOG_MODES)[number];
    /** `auto`: pretty on a terminal, else JSON. */
    readonly format: (typeof LOG_FORMATS)[number];
  };
  readonly seed?: { readonly customers: readonly SeedCustomer[] };
}

/** Values of the file as JSON has them. */
export type Disclosed =
  | string
  | number
  | boolean
  | null
  | readonly Disclosed[]
  | { readonly [name: string]: Disclosed };

export interface ListenConfig {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Addresses or CIDR blocks. */
  readonly trustedProxies: readonly string[];
  readonly trustForwardedHost: boolean;
  readonly keepAliveTimeoutMs: number;
  /** Absolute names. Left out: no TLS. */
  readonly tls?: { readonly certFile: string; readonly keyFile: string };
}

export interface AdminConfig {
  readonly host: string;
  readonly port: number;
  /** Host names besides those of its own address, in lower case; left out: none. */
  readonly allowedHosts?: readonly string[];
  /** Never empty; left out: tokens are off. */
  readonly token?: string;
  /** Left out: no JWT is accepted. */
  readonly jwt?: AdminJwtConfig;
}

export interface AdminJwtConfig {
  /** `https://…`, or `http://…` on a loopback address. */
  readonly jwksUrl: string;
  readonly issuer: string;
  readonly audience: string;
}

export interface StoreConfig {
  /** As src/store-address.ts has it, a file's path absolute. A secret: it may carry a password. */
  readonly url: string;
  /** PEM. Only with TLS. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string };
  /** Only with sentinels, where they want to know. */
  readonly sentinel?: { readonly username?: string; readonly password?: string };
  readonly keyPrefix: string;
  readonly timeoutMs: number;
  /** How quotas are decided while the store is away. */
  readonly onError: (typeof STORE_ERROR_MODES)[number];
}

/** `urls` differ from each other. Each is an origin (a default port left out) and a base path, without "/" at the end. */
export type UpstreamTarget =
  | { readonly kind: 'urls'; readonly urls: readonly [string, ...string[]] }
  | { readonly kind: 'sample' };

export interface UpstreamConfig {
  readonly target: UpstreamTarget;
  readonly balance: (typeof BALANCE_MODES)[number];
  readonly connectTimeoutMs: number;
  readonly responseTimeoutMs: number;
  readonly totalTimeoutMs: number;
  /** To each of several. */
  readonly maxConnections: number;
  /** At most `maxConnections`. */
  readonly maxConnectionsPerCustomer: number;
  /** Left out: none is asked. */
  readonly healthCheck?: { readonly path: string; readonly intervalMs: number };
  /** PEM: whom the backend's certificate must be signed by, and what it is shown of the gateway. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string };
  readonly credentials: (typeof CREDENTIAL_MODES)[number];
  /** A whole Authorization header value; present exactly when `credentials` is `replace`. */
  readonly authorization?: string;
  readonly preserveHost: boolean;
}

export interface RouteConfig {
  /** Literal segments, or one `{name}` for a whole segment. */
  readonly path: string;
  readonly methods: readonly (typeof ROUTE_METHODS)[number][];
}

export interface PlanConfig {
  readonly requestsPerHour: number | 'custom';
  /** Within any second, on each instance. */
  readonly burstPerSecond?: number;
  /** A limit that is reported and never enforced. */
  readonly shadow?: { readonly requestsPerHour: number };
}

export interface AuthConfig {
  readonly realm: string;
  /** After that a key or customer is read again. */
  readonly cacheMs: number;
  /** Keys, and customers, kept in memory. */
  readonly cacheEntries: number;
  /** How long a key that was known goes on being served while the store is away. */
  readonly staleIfErrorMs: number;
  /** Failed keys of one address, at all workers of this gateway, after which it is told to wait. */
  readonly failuresPerMinute: number;
  /** What becomes of a request that a browser sent. */
  readonly browserKeys: (typeof BROWSER_KEY_MODES)[number];
}

export interface IdentityConfig {
  readonly headers: boolean;
  /** Left out: the backend gets no assertion. */
  readonly assertion?: AssertionConfig;
}

export interface AssertionConfig {
  readonly issuer: string;
  readonly ttlSeconds: number;
  /** Ed25519, in PEM: a PKCS#8 private key, which signs, and further ones, private or public, which are published too. */
  readonly signingKeys: readonly string[];
}

export interface LimitsConfig {
  readonly headerBytes: number;
  readonly headerCount: number;
  readonly targetBytes: number;
  readonly connections: number;
  readonly inFlight: number;
  /** Requests of one connection that are worked on at once. */
  readonly pipelined: number;
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly answerStallTimeoutMs: number;
}

/** A customer that is written at start unless it exists, with a key that is public. */
export interface SeedCustomer {
  readonly id: string;
  readonly name?: string;
  readonly plan: string;
  readonly requestsPerHour?: number;
  readonly key: string;
}
