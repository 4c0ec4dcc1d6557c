/** Finds the commands that Redis does not permit, before a request or an operator needs one of them. */
import { readFileSync } from 'node:fs';
import { ReplyError } from 'ioredis';
import type { RedisClient } from './connection/client.ts';
import type { RedisKeyNames } from './protocol/key-names.ts';
import { describe } from './protocol/redis-errors.ts';

const PERMISSION_CHECK_LUA = readFileSync(new URL('./permission-check.lua', import.meta.url), 'utf8');
/** The flag of a read-only script, from Redis 7 on. */
const READ_ONLY = '#!lua flags=no-writes\n';
const NO_SCRIPT_SHA1 = '0'.repeat(40);
const SEE = 'see "Permissions" in docs/redis.md';

/**
 * Returns the refusals as sentences for the log. Leaves nothing in Redis. Never rejects: a check that cannot run
 * reports nothing. `readOnly`: runs the check as a read-only script, whose writes Redis refuses; before Redis 7 that finds
 * nothing.
 */
export async function checkPermissions(
  client: RedisClient,
  names: RedisKeyNames,
  { readOnly = false }: { readonly readOnly?: boolean } = {},
): Promise<string[]> {
  const script = readOnly ? READ_ONLY + PERMISSION_CHECK_LUA : PERMISSION_CHECK_LUA;
  const key = names.permissionCheck;
  const [bySha1, byText] = await Promise.allSettled([
    client.evalsha(NO_SCRIPT_SHA1, 1, key),
    // A read-only check passes the name as an argument, not as a key: then any master of a cluster runs the script.
    client.eval(script, readOnly ? 0 : 1, key),
  ]);
  const refused = [bySha1, byText].flatMap((result) => (result.status === 'rejected' ? refusal(result.reason) : []));
  const commands = byText.status === 'fulfilled' && Array.isArray(byText.value) ? byText.value.map(String) : [];
  if (commands.length > 0) refused.push(`this user may not run ${commands.join(', ')}`);
  return refused.map((what) => `Redis does not permit what the gateway needs (${what}): ${SEE}`);
}

function refusal(error: unknown): string[] {
  const isRefusal =
    error instanceof Error && error instanceof ReplyError && /^NOPERM |unknown command/.test(error.message);
  return isRefusal ? [describe(error).replace(/, with args.*/, '')] : [];
}
