/**
 * A Redis without AUTH (it was renamed, or a proxy does not know it) replies `ERR unknown command 'AUTH', with args
 * beginning with: 'user' 'password'`. That sentence became the reason for the outage, so the password was in `/status`,
 * in the log and in errors.
 */
import { inspect } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { createLogger } from '../../src/observability/logger.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import { RecordingObserver } from '../store/contract.ts';
import { startSentinelSystem } from '../support/redis-sentinel.ts';
import { startRedis } from '../support/redis-server.ts';

const PASSWORD = 'open-sesame';
const WITHOUT_AUTH = ['--rename-command', 'AUTH', ''];

/** What of the store an operator can see while Redis refuses it: errors, status, what is observed, warnings and log lines. */
async function everythingVisible(url: string, sentinel?: { readonly password: string }) {
  const observer = new RecordingObserver();
  const lines: string[] = [];
  const logger = createLogger({ level: 'debug', destination: { write: (line) => void lines.push(line) } });
  const store = await openRedisStore({
    url,
    keyPrefix: 'test',
    timeoutMs: 1000,
    clock: systemClock,
    observer,
    warn: (message) => logger.warn(message),
    ...(sentinel && { sentinel }),
  });
  onTestFinished(() => store.close());
  const error: unknown = await store.records.findKey('a'.repeat(64)).catch((reason: unknown) => reason);
  logger.error({ err: error }, 'a request could not be decided');
  return { text: inspect([error, store.status(), observer, lines], { depth: 10, showHidden: true }), error };
}

test.each(['', 'gateway'])(
  'a password that Redis repeats in its reply to AUTH stays inside (user %j)',
  async (user) => {
    const redis = await startRedis({ args: WITHOUT_AUTH });
    onTestFinished(() => redis.stop());
    const { text, error } = await everythingVisible(`redis://${user}:${PASSWORD}@127.0.0.1:${redis.port}`);
    expect(String(error)).toMatch(/not connected to Redis: ERR unknown command/i);
    expect(text).not.toContain(PASSWORD);
  },
);

test('nor does one that sentinels repeat', async () => {
  const system = await startSentinelSystem({ sentinelLines: ['rename-command AUTH ""'] });
  onTestFinished(() => system.stop());
  const { text, error } = await everythingVisible(system.url, { password: PASSWORD });
  expect(String(error)).toContain('not connected to Redis');
  expect(text).not.toContain(PASSWORD);
});
