/**
 * Warnings about the Redis server, as sentences for operators. Managed servers often forbid CONFIG, and some reply to
 * INFO only in part; a setting that cannot be read causes no warning.
 */
import type { RedisClient } from './client.ts';

const OLDEST_VERSION = [6, 2] as const;
/** A busy window is a hash of 361 buckets and a head. */
const WINDOW_FIELDS = 400;

/** Checks the server without writing to it. Never rejects: a fact that cannot be read is undefined. */
export async function checkServer(redis: RedisClient) {
  const info = await redis.info().catch(() => '');
  const config = await redis.config('GET', 'hash-max-*-entries').catch(() => undefined);
  const warnings: string[] = [];

  const version = infoField(info, 'redis_version');
  const [major = 0, minor = 0] = (version ?? '').split('.').map(Number);
  const [oldestMajor, oldestMinor] = OLDEST_VERSION;
  if (version !== undefined && (major < oldestMajor || (major === oldestMajor && minor < oldestMinor))) {
    warnings.push(`Redis ${version} is too old: ${OLDEST_VERSION.join('.')} or newer is needed`);
  }

  const policy = infoField(info, 'maxmemory_policy');
  if (policy !== undefined && policy !== 'noeviction') {
    warnings.push(
      `Redis has maxmemory-policy ${policy}: when its memory is full, it deletes keys and quotas. Set it to noeviction`,
    );
  }

  const packedEntries = Array.isArray(config) ? Number(config[1]) : Number.NaN;
  if (packedEntries < WINDOW_FIELDS) {
    warnings.push(
      `Redis has ${config?.[0]} ${packedEntries}: below ${WINDOW_FIELDS}, the window of a busy customer takes 21 KB instead of 3 KB`,
    );
  }
  return { version, maxmemoryPolicy: policy, warnings };
}

/** Returns the value of a field in the reply to INFO. */
export function infoField(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(.*)$`, 'm').exec(info)?.[1]?.trim();
}
