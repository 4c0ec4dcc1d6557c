import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { CallerWatcher } from '../../src/upstream/caller-connection.ts';
import { ConnectionPool } from '../../src/upstream/connection-pool.ts';
import type { Timed } from '../../src/upstream/deadlines.ts';
import { type ForwardOutcome, Relay } from '../../src/upstream/relay.ts';
import { holdConnections } from './support/held-connections.ts';

/** A relay whose connection is still being made: moments that real connections pass too fast to be met. */
function connecting() {
  let nowMs = 0;
  const clock = { nowMs: () => 0, monotonicMs: () => nowMs };
  const req = new IncomingMessage(new Socket());
  req.method = 'GET';
  const { connect, begun } = holdConnections();
  const pool = new ConnectionPool({ connect, maxConnections: 1, maxHeaderBytes: 16_384, clock });
  const callers = new Set<CallerWatcher>();
  const deadlines = new Set<Timed>();
  const { promise: outcome, resolve: settled, reject: broken } = Promise.withResolvers<ForwardOutcome>();
  outcome.catch(() => {});
  const relay = new Relay(
    req,
    new ServerResponse(req),
    {
      path: '/',
      headers: [],
      beginBefore: 1_000_000,
      beginBeforeWallMs: Number.POSITIVE_INFINITY,
      answerHeaders: () => [],
      settled,
      broken,
    },
    {
      pool,
      authority: 'upstream.test',
      deadlines: { watch: (timed) => void deadlines.add(timed), unwatch: (timed) => void deadlines.delete(timed) },
      callers: {
        watch: (_socket, watcher) => void callers.add(watcher),
        unwatch: (_socket, watcher) => void callers.delete(watcher),
      },
      ownAnswerNames: new Set(),
      responseTimeoutMs: 1_000_000,
      totalTimeoutMs: 2_000_000,
      clock,
    },
  );
  relay.start('/');
  const [connection] = begun;
  if (connection === undefined) throw new Error('no connection was begun');
  return {
    relay,
    outcome,
    pool,
    connection,
    watchers: () => callers.size + deadlines.size,
    leave() {
      for (const watcher of callers) watcher.onCallerGone();
    },
    setTime(ms: number) {
      nowMs = ms;
    },
  };
}

test('a connection that stands after the caller has left is not used, and the pool does not close before', async () => {
  const { outcome, pool, connection, leave } = connecting();
  leave();
  expect(await outcome).toMatchObject({ kind: 'client_gone', begun: false });
  let closed = false;
  const closing = pool.close().then(() => {
    closed = true;
  });
  await setImmediate();
  expect(closed).toBe(false);
  connection.stand();
  await closing;
  expect(connection.sent).toBe('');
});

test('the time to begin is looked at once more when the connection stands', async () => {
  const { outcome, connection, setTime } = connecting();
  setTime(1_000_000);
  connection.stand();
  expect(await outcome).toMatchObject({ kind: 'failed', failure: 'dispatch_timeout', begun: false });
  expect(connection.sent).toBe('');
});

test('a request begins up to the last moment', async () => {
  const { outcome, connection, setTime, leave } = connecting();
  setTime(999_999);
  connection.stand();
  expect(connection.sent).toBe('GET / HTTP/1.1\r\nHost: upstream.test\r\n\r\n');
  leave();
  expect(await outcome).toMatchObject({ kind: 'client_gone', begun: true });
  expect(connection.destroyed).toBe(true);
});

test('a bug before the request began rejects and lets the connection go unused', async () => {
  const { relay, outcome, connection } = connecting();
  relay.giveUp(new TypeError('a bug'));
  await expect(outcome).rejects.toThrow('a bug');
  connection.stand();
  expect([connection.sent, connection.destroyed]).toEqual(['', false]);
});

test('a connection that fails after its request was given up is nobody’s failure', async () => {
  const { outcome, pool, connection, leave } = connecting();
  leave();
  connection.destroy(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }));
  expect(await outcome).toMatchObject({ kind: 'client_gone', begun: false });
  await pool.close();
});

test.each<[string, (connected: ReturnType<typeof connecting>) => void]>([
  [
    'is too late',
    ({ setTime, connection }) => {
      setTime(1_000_000);
      connection.stand();
    },
  ],
  [
    'is broken by the upstream',
    ({ connection }) => {
      connection.stand();
      connection.receive('SSH-2.0-OpenSSH_9.2\r\n\r\n');
    },
  ],
  ['is left by its caller', ({ leave }) => leave()],
  ['meets a bug', ({ relay }) => relay.giveUp(new TypeError('a bug'))],
])('a caller connection and the deadlines keep nothing of a request that %s', async (_, end) => {
  const connected = connecting();
  expect(connected.watchers()).toBe(2);
  end(connected);
  await connected.outcome.catch(() => {});
  expect(connected.watchers()).toBe(0);
});
