/**
 * A program that wrote scores without end into the portal's count of changes made customers wait a negative time: the
 * header `Retry-After` of the refusal was no number of seconds (RFC 9110 §10.2.3).
 */
import { expect, it, onTestFinished } from 'vitest';
import { PORTAL_WRITES_MS } from '../../src/store/portal-sessions.ts';
import { openWithPrefix } from '../store/open-with-prefix.ts';
import { startRedis } from '../support/redis-server.ts';

it.each(['+inf', '-inf', '1e300', '-1e300'])(
  'with a score of %s, a customer waits no longer than changes are counted',
  async (score) => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const { store, prefix } = await openWithPrefix(redis);
    await redis.command('ZADD', `${prefix}:portal-writes:{acme}`, score, 'other');
    const waitMs = await store.portalSessions.countWrite('acme', 'own', 1);
    expect(waitMs).toBeGreaterThanOrEqual(0);
    expect(waitMs).toBeLessThanOrEqual(PORTAL_WRITES_MS);
  },
);
