/**
 * The effective configuration as the rest of the gateway sees it: checked, complete and deeply frozen. Most of it is named
 * and described once, in schema.ts; here is what is derived from that, read from named files, or left out.
 */
import type { LogoType } from '../formats/logo.ts';
import type { FileValues } from './schema.ts';

export type Section<Name extends keyof FileValues> = NonNullable<FileValues[Name]>;

export type Config = Omit<FileValues, keyof DerivedValues> & DerivedValues;

interface DerivedValues {
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
    /** The same of the limits of days and months, where there are any. */
    readonly periods: {
      readonly plans: ReadonlyMap<string, string>;
      readonly overrides: ReadonlyMap<string, string>;
    };
  };
  /** All values by their names in the file, without secrets. */
  readonly disclosed: Disclosed;
  /** What the file sets, as written there, without secrets. */
  readonly disclosedFile: Disclosed;
  /** Absent: no admin API. */
  readonly admin?: AdminConfig | undefined;
  /** Absent: no check listener. */
  readonly check?: CheckConfig | undefined;
  /** Absent: no portal. */
  readonly portal?: PortalConfig | undefined;
  readonly store: StoreConfig;
  /** By name; `default` is the one of the section `upstream`. */
  readonly backends: ReadonlyMap<string, BackendConfig>;
  readonly upstream?: BackendConfig | undefined;
  readonly upstreams: ReadonlyMap<string, BackendConfig>;
  /** GET includes HEAD. */
  readonly routes: readonly (Section<'routes'>[number] & { readonly maxBodyBytes: number })[];
  /** Canonical path where a client reads its own quota; absent: not offered. */
  readonly usagePath?: string | undefined;
  /** How long the usage history is kept; absent: there is none. */
  readonly usage?: Section<'usage'> | undefined;
  /** How many refused and failed requests are kept, and for how long; absent: none. */
  readonly requests?: Section<'requests'> | undefined;
  /** Absent: no notices. */
  readonly notices?: NoticesConfig | undefined;
  /** Absent: no traces. */
  readonly tracing?: TracingConfig | undefined;
  /** Former plan names, each with the current name of its plan. */
  readonly formerPlans: ReadonlyMap<string, string>;
  readonly identity: IdentityConfig;
}

/** The sections of listeners. */
export type ListenerName = 'listen' | 'ops' | 'admin' | 'portal' | 'check';

/** The files that a configuration was read from; the environment is not included. */
export interface ConfigSource {
  readonly namedFiles: readonly NamedFile[];
  /** Changes with the content of the config file and of each named file. Never expose it: it hashes secrets. */
  readonly digest: string;
}

/** A file that the configuration names with a `…_file` setting. */
export interface NamedFile {
  /** As in the config reference: `admin.token_file`. */
  readonly setting: string;
  /** Absolute path. */
  readonly file: string;
}

/** A value of the config file, as JSON. */
export type Disclosed =
  | string
  | number
  | boolean
  | null
  | readonly Disclosed[]
  | { readonly [name: string]: Disclosed };

/** `token`: never empty; absent: no token is accepted. `allowedHosts`: in lower case. */
export type AdminConfig = Omit<Section<'admin'>, 'tokenFile'>;

/** `token`: never empty; absent: none is needed. */
export interface CheckConfig extends Omit<Section<'check'>, 'tokenFile'> {
  readonly trustedProxies: readonly string[];
}

/** `publicUrl`: as the URL standard writes an origin. `apiUrl`: without a slash at the end. */
export interface PortalConfig extends Omit<Section<'portal'>, 'logoFile'> {
  readonly logo?: { readonly type: LogoType; readonly base64: string };
}

export type AdminJwtConfig = NonNullable<AdminConfig['jwt']>;

/** PEM: the CAs that must sign the peer's certificate, and the gateway's client certificate with its key. */
interface ClientTls {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

interface StoreConfig extends Omit<Section<'store'>, 'url' | 'urlFile' | 'tls' | 'sentinel'> {
  /**
   * In the form that src/formats/store-address.ts parses; a file's path is absolute. Secret: may contain a password.
   */
  readonly url: string;
  /** Only with TLS. */
  readonly tls?: ClientTls;
  /** Credentials for the sentinels; present only with sentinels. */
  readonly sentinel?: { readonly username?: string; readonly password?: string };
}

export interface BackendConfig extends Omit<Section<'upstream'>, 'urls' | 'authorizationFile' | 'tls'> {
  /** Distinct. Each is an origin (default port omitted) and a base path, without "/" at the end. */
  readonly urls: readonly [string, ...string[]];
  /** At most `maxConnections`. */
  readonly maxConnectionsPerCustomer: number;
  readonly tls?: ClientTls;
}

export interface TracingConfig extends Omit<Section<'tracing'>, 'headersFile'> {
  /** Further headers for the collector, by name. Secret. */
  readonly exportHeaders: Readonly<Record<string, string>>;
}

interface IdentityConfig extends Omit<Section<'identity'>, 'assertion'> {
  /** Absent: the backend gets no assertion. */
  readonly assertion?: AssertionConfig;
}

interface AssertionConfig extends Omit<NonNullable<Section<'identity'>['assertion']>, 'signingKeyFile'> {
  /** Ed25519 keys in PEM, all published. The first, private in PKCS#8, signs; the others may be private or public. */
  readonly signingKeys: readonly string[];
}

/** Levels and days are in ascending order. */
export interface NoticesConfig extends Omit<Section<'notices'>, 'endpoints'> {
  /** Empty in workers, which send nothing. */
  readonly endpoints: readonly {
    readonly url: string;
    /** `whsec_…`: one, or two while the secret is rotated. */
    readonly secrets: readonly string[];
    readonly allowPrivate: boolean;
  }[];
}
