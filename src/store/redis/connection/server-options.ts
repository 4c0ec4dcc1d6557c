/** The options of ioredis that select a server and authenticate to it. */
import type { HostAndPort, RedisAccess, RedisAddress } from '../../../formats/store-address.ts';
import type { ClientOptions } from './client.ts';

/** A sentinel that does not reply within this time is skipped. */
const SENTINEL_TIMEOUT_MS = 1000;

export interface RedisSecurity {
  /** Certificates and key in PEM. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string };
  readonly sentinel?: { readonly username?: string; readonly password?: string };
}

/** Returns the options for one server, or for the current master of Sentinel, which is resolved at each connect. */
export function serverOptions(
  address: Exclude<RedisAddress, { kind: 'cluster' }>,
  security: RedisSecurity = {},
): ClientOptions {
  if (address.kind === 'redis') return { ...memberOptions(address, address, security), db: address.database };
  if (address.kind === 'unix') return { path: address.path, ...accessOptions(address, security) };
  const { sentinels, master, database } = address;
  const { username, password } = security.sentinel ?? {};
  return {
    ...accessOptions(address, security),
    sentinels: sentinels.map(({ host, port }) => ({ host, port })),
    name: master,
    db: database,
    ...(username !== undefined && { sentinelUsername: username }),
    ...(password !== undefined && { sentinelPassword: password }),
    ...(address.tls && { sentinelTLS: { ...security.tls }, enableTLSForSentinelMode: true }),
    sentinelCommandTimeout: SENTINEL_TIMEOUT_MS,
  };
}

/** Returns the options for one member of a cluster. */
export function memberOptions(
  { host, port }: HostAndPort,
  access: RedisAccess,
  security: RedisSecurity = {},
): ClientOptions {
  return { host, port, ...accessOptions(access, security) };
}

function accessOptions({ tls, username, password }: RedisAccess, security: RedisSecurity): ClientOptions {
  return {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(tls && { tls: { ...security.tls } }),
  };
}
