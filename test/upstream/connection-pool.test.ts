import { setImmediate } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { ConnectionPool } from '../../src/upstream/http1/connection-pool.ts';
import type { UpstreamConnection } from '../../src/upstream/http1/upstream-connection.ts';
import { type HeldConnection, holdConnections } from './support/held-connections.ts';
import { TestRequest } from './support/test-request.ts';

const REQUEST = 'GET / HTTP/1.1\r\n\r\n';
const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';
const NOT_MODIFIED = 'HTTP/1.1 304 Not Modified\r\n\r\n';

/** Sends a request on the connection that it gets, unless it `declines`. */
class NotingRequest extends TestRequest {
  connection: UpstreamConnection | undefined;
  error: Error | undefined;
  ended = false;
  override readonly isRepeatable: boolean;
  readonly #declines: boolean;

  constructor({ declines = false, isRepeatable = true } = {}) {
    super();
    this.#declines = declines;
    this.isRepeatable = isRepeatable;
  }

  override onConnection(connection: UpstreamConnection): boolean {
    if (this.#declines) return false;
    this.connection = connection;
    connection.send(REQUEST, false, {
      onSend: () => true,
      onHead: () => {
        this.ended = true;
      },
      onContent: () => {},
      onPause: () => {},
      onError: (error) => {
        this.error = error as Error;
      },
    });
    return true;
  }

  override onError(error: Error): void {
    this.error = error;
  }
}

function openPool({ maxConnections = 2 } = {}) {
  const held = holdConnections();
  const clock = { ms: 0, nowMs: () => clock.ms, monotonicMs: () => clock.ms };
  const pool = new ConnectionPool({
    connect: held.connect,
    maxConnections,
    maxConnectionsPerCustomer: maxConnections,
    maxWaitingPerCustomer: () => 0,
    maxHeaderBytes: 16_384,
    clock,
  });
  return {
    pool,
    started: held.started,
    pass(ms: number) {
      clock.ms += ms;
    },
    take(options?: { declines?: boolean; isRepeatable?: boolean }) {
      const taker = new NotingRequest(options);
      pool.take(taker);
      return taker;
    },
    /** Returns the connection that was started as number `at`, from 0. */
    at(at: number): HeldConnection {
      const connection = held.started[at];
      if (connection === undefined) throw new Error(`only ${held.started.length} connections were started`);
      return connection;
    },
  };
}

function closed(connection: HeldConnection): Promise<unknown> {
  return new Promise((resolve) => connection.once('close', resolve));
}

test('a free connection is reused, the most recently used first', async () => {
  const { take, at, started } = openPool();
  const [first, second] = [take(), take()];
  at(0).open();
  at(1).open();
  await at(1).receive(ANSWER);
  await at(0).receive(ANSWER);
  expect([first.ended, second.ended]).toEqual([true, true]);
  expect(take().connection).toBe(first.connection);
  expect(take().connection).toBe(second.connection);
  expect(started).toHaveLength(2);
});

test('at most maxConnections are opened; further requests wait and are served first in, first out', async () => {
  const { take, at, started } = openPool({ maxConnections: 1 });
  const [first, second, third] = [take(), take(), take()];
  at(0).open();
  expect([first.connection !== undefined, second.connection, third.connection]).toEqual([true, undefined, undefined]);
  await at(0).receive(ANSWER);
  expect(second.connection).toBe(first.connection);
  expect(third.connection).toBeUndefined();
  expect(started).toHaveLength(1);
});

test('a withdrawn request gets no connection, and the connection opened for it serves the next request', () => {
  const { pool, take, at, started } = openPool();
  const gone = take();
  pool.withdraw(gone);
  at(0).open();
  expect(gone.connection).toBeUndefined();
  expect(take().connection).toBeDefined();
  expect(started).toHaveLength(1);
});

test('a declined connection goes to the next waiting request', () => {
  const { take, at } = openPool({ maxConnections: 1 });
  take({ declines: true });
  const next = take();
  at(0).open();
  expect(next.connection).toBeDefined();
});

test('a failed connection fails one waiting request, and none for which another connection is being opened', () => {
  const { pool, take, at } = openPool();
  const [first, second] = [take(), take()];
  pool.withdraw(first);
  const refusal = new Error('refused');
  const failed = at(0);
  failed.emit('error', refusal);
  failed.emit('close');
  expect(second.error).toBeUndefined();
  at(1).emit('error', refusal);
  at(1).emit('close');
  expect(second.error).toBe(refusal);
});

test('a connection that closes is replaced by a new one for the waiting request', async () => {
  const { take, at, started } = openPool({ maxConnections: 1 });
  const [first, second] = [take(), take()];
  at(0).open();
  at(0).destroy();
  await closed(at(0));
  expect(first.error).toMatchObject({ code: 'ECONNRESET' });
  expect(started).toHaveLength(2);
  at(1).open();
  expect(second.connection).toBeDefined();
});

test.each([
  ['for 4 s if the upstream names no timeout', ANSWER, 3999, 4000],
  [
    'until 2 s before the timeout that the upstream names',
    'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=15\r\nContent-Length: 0\r\n\r\n',
    12_999,
    13_000,
  ],
  ...(
    [
      [1, 500],
      [3, 1_500],
      [4, 2_000],
    ] as const
  ).map(([seconds, ms]): [string, string, number, number] => [
    `for half of a timeout of ${seconds} s`,
    `HTTP/1.1 200 OK\r\nKeep-Alive: timeout=${seconds}\r\nContent-Length: 0\r\n\r\n`,
    ms - 1,
    ms,
  ]),
  [
    'for at most ten minutes',
    'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=99999\r\nContent-Length: 0\r\n\r\n',
    599_999,
    600_000,
  ],
])('a free connection is used again %s', async (_, answer, lastMs, tooLateMs) => {
  for (const [ms, connections] of [
    [lastMs, 1],
    [tooLateMs, 2],
  ] as const) {
    const { take, at, started, pass } = openPool();
    take();
    at(0).open();
    await at(0).receive(answer);
    pass(ms);
    take();
    expect(started).toHaveLength(connections);
  }
});

test('a request that must not be sent twice uses no connection after 1 s, and leaves it to those that may', async () => {
  const { take, at, started, pass } = openPool();
  take();
  at(0).open();
  await at(0).receive(ANSWER);
  pass(999);
  const within = take({ isRepeatable: false });
  expect(within.connection).toBeDefined();
  await at(0).receive(ANSWER);
  pass(1_000);
  expect(take({ isRepeatable: false }).connection).toBeUndefined();
  expect(started).toHaveLength(2);
  expect(take().connection).toBe(within.connection);
});

test('in a full pool, a connection that a waiting request must not use makes room for a new one', async () => {
  const { take, at, started, pass } = openPool({ maxConnections: 1 });
  take();
  at(0).open();
  await at(0).receive(ANSWER);
  pass(1_000);
  const waiting = take({ isRepeatable: false });
  expect(at(0).destroyed).toBe(true);
  expect(started).toHaveLength(2);
  at(1).open();
  expect(waiting.connection).toBeDefined();
});

test('a connection is not kept if the keep-alive timeout of the upstream is 0', async () => {
  const { take, at } = openPool();
  take();
  at(0).open();
  await at(0).receive('HTTP/1.1 200 OK\r\nKeep-Alive: timeout=0\r\nContent-Length: 0\r\n\r\n');
  expect(at(0).destroyed).toBe(true);
});

test('a connection is held back until it was silent for 50 ms after a 304, whoever asks for it', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const { pool, take, at, started, pass } = openPool();
  const first = take();
  at(0).open();
  await at(0).receive(NOT_MODIFIED);
  expect(first.ended).toBe(true);
  expect(pool.load).toBe(0);
  pass(49);
  vi.advanceTimersByTime(49);
  await setImmediate();
  const second = take();
  expect(started).toHaveLength(2);
  pass(1);
  vi.advanceTimersByTime(1);
  await setImmediate();
  expect(second.connection).toBe(first.connection);
});

test('a connection that is held back makes room for a new one if the pool is full, and delays no close', async () => {
  const { pool, take, at, started } = openPool({ maxConnections: 1 });
  take();
  at(0).open();
  await at(0).receive(NOT_MODIFIED);
  take();
  expect(at(0).destroyed).toBe(true);
  expect(started).toHaveLength(2);
  at(1).open();
  const waiting = take();
  await at(1).receive(NOT_MODIFIED);
  expect(at(1).destroyed).toBe(true);
  at(2).open();
  expect(waiting.connection).toBeDefined();
  await at(2).receive(NOT_MODIFIED);
  await pool.close();
  expect(at(2).destroyed).toBe(true);
});

test('unsolicited bytes close a free connection, so that they are not read as a response', async () => {
  const { take, at, started } = openPool();
  take();
  at(0).open();
  await at(0).receive(ANSWER);
  await at(0).receive(ANSWER);
  expect(at(0).destroyed).toBe(true);
  const next = take();
  expect(next.ended).toBe(false);
  expect(started).toHaveLength(2);
});

test('bytes that arrive before a request is written are not its response', async () => {
  const { take, at } = openPool();
  take();
  at(0).open();
  await at(0).receive(ANSWER);
  const taker = take();
  at(0).receiveAtOnce(ANSWER);
  expect(taker.ended).toBe(false);
  expect(taker.error).toMatchObject({ code: 'ECONNRESET' });
  expect(at(0).destroyed).toBe(true);
  await setImmediate();
  expect(at(0).sent).toBe(REQUEST);
});

test('bytes after a response, in the same read, close its connection', async () => {
  const { take, at } = openPool();
  const taker = take();
  at(0).open();
  await at(0).receive(`${ANSWER}HTTP/1.1 500`);
  expect(taker.ended).toBe(true);
  expect(at(0).destroyed).toBe(true);
});

test('close waits for requests in progress, and a later request gets a connection that is closed after it', async () => {
  const { pool, take, at } = openPool();
  const taker = take();
  at(0).open();
  let isClosed = false;
  const closing = pool.close().then(() => {
    isClosed = true;
  });
  await Promise.resolve();
  expect(isClosed).toBe(false);
  await at(0).receive(ANSWER);
  await closing;
  expect(taker.ended).toBe(true);
  expect(at(0).destroyed).toBe(true);
  const late = take();
  at(1).open();
  await at(1).receive(ANSWER);
  expect(late.ended).toBe(true);
  expect(at(1).destroyed).toBe(true);
});
