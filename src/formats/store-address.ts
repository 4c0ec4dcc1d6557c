/** Parses `store.url`. Faults complete the text "store.url: …" and never repeat the URL, which may hold a password. */
import { isIP } from 'node:net';
import { isHostName, isSocketPath } from './host.ts';

export interface HostAndPort {
  /** IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
}

/** How to connect to Redis. User name and password are percent-decoded. */
export interface RedisAccess {
  readonly tls: boolean;
  readonly username?: string;
  readonly password?: string;
}

export type RedisAddress =
  | (RedisAccess & HostAndPort & { readonly kind: 'redis'; readonly database: number })
  /** A server on this machine, by the path of its unix socket. */
  | (RedisAccess & { readonly kind: 'unix'; readonly path: string })
  | (RedisAccess & {
      readonly kind: 'sentinel';
      readonly sentinels: readonly HostAndPort[];
      /** The master's name in the sentinels' config. */
      readonly master: string;
      readonly database: number;
    })
  /** `seeds`: some members of the cluster, from which the others are discovered. */
  | (RedisAccess & { readonly kind: 'cluster'; readonly seeds: readonly HostAndPort[] });

type StoreAddress =
  | RedisAddress
  /** `file`: as written, not yet resolved. */
  | { readonly kind: 'sqlite'; readonly file: string }
  | { readonly kind: 'invalid'; readonly fault: string };

const REDIS_PORT = 6379;
const SENTINEL_PORT = 26_379;

const STORE_RULE =
  'must be redis://host[:port][/db], redis+sentinel://host[:port],…/master-name[/db], redis+cluster://host[:port],… (with TLS: rediss…) or sqlite:FILE';
const UNIX_RULE = 'must name a unix socket by its absolute path: unix:/path, or unix://user:password@/path';
const DATABASE_RULE = 'must end after the host and port, or with the number of a database: /0';
const SENTINEL_RULE = "must name the sentinels' master after their addresses: /master-name or /master-name/0";

const HOST_AND_PORT = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::(\d{1,5}))?$/;
const DATABASE = /^(?:\/(\d{0,5}))?$/;
/** A master name that Sentinel accepts, optionally followed by a database number. */
const MASTER = /^\/([A-Za-z0-9._-]+)(?:\/(\d{0,5}))?$/;

class Fault extends Error {}

export function parseStoreUrl(text: string): StoreAddress {
  const [, scheme = '', rest = ''] = /^([a-z][a-z0-9+.-]*):(.*)$/is.exec(text) ?? [];
  try {
    return addressOf(scheme.toLowerCase(), rest);
  } catch (error) {
    if (error instanceof Fault) return { kind: 'invalid', fault: error.message };
    throw error;
  }
}

function addressOf(scheme: string, rest: string): StoreAddress {
  if (scheme === 'sqlite') return { kind: 'sqlite', file: sqliteFile(rest) };
  if (scheme === 'unix') return unixSocket(rest);
  const [, secure, topology] = /^redis(s?)(?:\+(sentinel|cluster))?$/.exec(scheme) ?? [];
  if (secure === undefined) throw new Fault(STORE_RULE);
  const { credentials, hosts, path } = partsOf(rest);
  const access = { tls: secure === 's', ...credentials };
  switch (topology) {
    case 'sentinel':
      return { kind: 'sentinel', sentinels: everyHost(hosts, SENTINEL_PORT), ...masterOf(path), ...access };
    case 'cluster':
      if (path !== '' && path !== '/')
        throw new Fault('must end after the hosts and ports: a cluster has no databases');
      return { kind: 'cluster', seeds: everyHost(hosts, REDIS_PORT), ...access };
    default:
      if (hosts.includes(',')) {
        throw new Fault('must name one host; for several write redis+sentinel:// or redis+cluster://');
      }
      return { kind: 'redis', ...hostAndPort(hosts, REDIS_PORT), database: databaseOf(path), ...access };
  }
}

function unixSocket(rest: string): RedisAddress {
  const { credentials, hosts, path } = partsOf(rest.startsWith('//') ? rest : `//${rest}`);
  if (hosts !== '' || !isSocketPath(path)) throw new Fault(UNIX_RULE);
  return { kind: 'unix', path, tls: false, ...credentials };
}

function partsOf(rest: string) {
  if (!rest.startsWith('//')) throw new Fault(STORE_RULE);
  if (/[?#]/.test(rest)) throw new Fault('must have no query and no fragment');
  if (/[\s\\]|\p{Cc}/u.test(rest)) throw new Fault('must have no white space and no backslash');
  const [, authority = '', path = ''] = /^\/\/([^/]*)(.*)$/s.exec(rest) ?? [];
  const at = authority.lastIndexOf('@');
  return { credentials: credentialsOf(authority.slice(0, Math.max(at, 0))), hosts: authority.slice(at + 1), path };
}

function credentialsOf(userInfo: string): { username?: string; password?: string } {
  const [, user = '', password = ''] = /^([^:]*):?(.*)$/s.exec(userInfo) ?? [];
  if (user !== '' && password === '') throw new Fault('must have a password after the user name: user:password@');
  return { ...(user !== '' && { username: decoded(user) }), ...(password !== '' && { password: decoded(password) }) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Fault('must have user and password percent-encoded: "%" is written %25');
  }
}

function everyHost(hosts: string, defaultPort: number): HostAndPort[] {
  const found = hosts.split(',').map((host) => hostAndPort(host, defaultPort));
  const names = found.map(({ host, port }) => `${host} ${port}`);
  if (new Set(names).size < names.length) throw new Fault('must name each host and port once');
  return found;
}

function hostAndPort(text: string, defaultPort: number): HostAndPort {
  const [, inBrackets, name = '', portText] = HOST_AND_PORT.exec(text) ?? [];
  const host = inBrackets ?? name;
  if (host === '') throw new Fault(STORE_RULE);
  if (inBrackets === undefined ? isIP(host) !== 4 && !isHostName(host) : isIP(host) !== 6) {
    throw new Fault('must have an IP address (IPv6 in brackets) or a host name before each port');
  }
  const port = portText === undefined ? defaultPort : Number(portText);
  if (port < 1 || port > 65_535) throw new Fault('must have ports from 1 to 65535');
  return { host, port };
}

function databaseOf(path: string): number {
  const match = DATABASE.exec(path);
  if (match === null) throw new Fault(DATABASE_RULE);
  return Number(match[1] ?? 0);
}

function masterOf(path: string): { master: string; database: number } {
  const [, master, database] = MASTER.exec(path) ?? [];
  if (master === undefined) throw new Fault(SENTINEL_RULE);
  return { master, database: Number(database ?? 0) };
}

function sqliteFile(file: string): string {
  if (file.startsWith('//')) throw new Fault('must name the file right after "sqlite:", without "//"');
  if (file.trim() === '' || file.startsWith(':') || file.endsWith('/') || file.includes('\0')) {
    throw new Fault('must name a file: sqlite:FILE, relative to the folder of the configuration');
  }
  return file;
}
