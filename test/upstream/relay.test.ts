import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { systemScheduler } from '../../src/base/clock.ts';
import { Backend, type RetryResult } from '../../src/upstream/backend.ts';
import type { Timed } from '../../src/upstream/deadlines.ts';
import type { ForwardOutcome } from '../../src/upstream/forward-request.ts';
import { Relay } from '../../src/upstream/relay.ts';
import { holdConnections } from './support/held-connections.ts';

/** The requests that a socket notifies when it closes: a private property. */
function notifiedBy(socket: Socket): readonly unknown[] {
  const property = Object.getOwnPropertySymbols(socket).find(({ description }) => description === 'listeners');
  return property === undefined ? [] : Reflect.get(socket, property);
}

/** A relay whose connection is still being made: moments that real connections pass too fast to be met. */
function connecting(urls: readonly URL[] = [new URL('http://192.0.2.1')]) {
  let nowMs = 0;
  const clock = { nowMs: () => 0, monotonicMs: () => nowMs };
  const req = new IncomingMessage(new Socket());
  req.method = 'GET';
  const { connect, started } = holdConnections();
  const retries: RetryResult[] = [];
  const backend = new Backend({
    urls,
    balance: 'least_loaded',
    backend: 'default',
    load: { inFlight: 0, latestAtMs: 0 },
    isWithinShare: () => true,
    connectTo: () => connect,
    maxConnections: 1,
    maxConnectionsPerCustomer: 1,
    maxWaitingPerCustomer: () => 0,
    maxHeaderBytes: 16_384,
    observer: { changed() {}, retry: (_backend, result) => void retries.push(result) },
    lookup: () => Promise.reject(new Error('there is no name to look up')),
    clock,
    scheduler: systemScheduler,
  });
  const deadlines = new Set<Timed>();
  const { promise: outcome, resolve: onOutcome, reject: onBug } = Promise.withResolvers<ForwardOutcome>();
  outcome.catch(() => {});
  const relay = new Relay(
    {
      req,
      res: new ServerResponse(req),
      path: '/',
      customer: 'acme',
      body: undefined,
      host: undefined,
      headers: '',
      beginDeadlineMs: 1_000_000,
      beginDeadlineWallMs: Number.POSITIVE_INFINITY,
    },
    { backend, responseTimeoutMs: 1_000_000, idleTimeoutMs: 2_000_000 },
    {
      responseLines: () => '',
      onOutcome: (_request, ended) => onOutcome(ended),
      onBug: (_request, error) => onBug(error),
    },
    {
      deadlines: { watch: (timed) => void deadlines.add(timed), unwatch: (timed) => void deadlines.delete(timed) },
      passedLines: (lines) => lines,
      clock,
    },
  );
  relay.start();
  const [connection] = started;
  if (connection === undefined) throw new Error('no connection was started');
  return {
    relay,
    outcome,
    backend,
    retries,
    started,
    connection,
    watchers: () => notifiedBy(req.socket).length + deadlines.size,
    leave: () => req.socket.emit('close'),
    setTime(ms: number) {
      nowMs = ms;
    },
  };
}

test('a connection that opens after the client has disconnected is not used, and the upstreams do not close before', async () => {
  const { outcome, backend, connection, leave } = connecting();
  leave();
  expect(await outcome).toMatchObject({ kind: 'client_gone', wasSent: false });
  let closed = false;
  const closing = backend.close().then(() => {
    closed = true;
  });
  await setImmediate();
  expect(closed).toBe(false);
  connection.open();
  await closing;
  expect(connection.sent).toBe('');
});

test('the deadline for sending is checked again when the connection opens', async () => {
  const { outcome, connection, setTime } = connecting();
  setTime(1_000_000);
  connection.open();
  expect(await outcome).toMatchObject({ kind: 'failed', failure: 'dispatch_timeout', wasSent: false });
  expect(connection.sent).toBe('');
});

test('the deadline for sending is checked again when the request is written, at the end of the turn', async () => {
  const { outcome, connection, setTime } = connecting();
  connection.open();
  setTime(1_000_000);
  expect(await outcome).toMatchObject({ kind: 'failed', failure: 'dispatch_timeout', wasSent: false });
  expect([connection.sent, connection.destroyed]).toEqual(['', true]);
});

test('a request is sent until just before its deadline', async () => {
  const { outcome, connection, setTime, leave } = connecting();
  setTime(999_999);
  connection.open();
  await setImmediate();
  expect(connection.sent).toBe('GET / HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n');
  leave();
  expect(await outcome).toMatchObject({ kind: 'client_gone', wasSent: true });
  expect(connection.destroyed).toBe(true);
});

test('a bug before the request was sent rejects and leaves the connection unused', async () => {
  const { relay, outcome, connection } = connecting();
  relay.abort(new TypeError('a bug'));
  await expect(outcome).rejects.toThrow('a bug');
  connection.open();
  expect([connection.sent, connection.destroyed]).toEqual(['', false]);
});

test('a connection that fails after its client disconnected is not reported as a failure', async () => {
  const { outcome, backend, connection, leave } = connecting();
  leave();
  connection.destroy(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }));
  expect(await outcome).toMatchObject({ kind: 'client_gone', wasSent: false });
  await backend.close();
});

test.each<[string, (connected: ReturnType<typeof connecting>) => unknown]>([
  [
    'is too late',
    ({ setTime, connection }) => {
      setTime(1_000_000);
      connection.open();
    },
  ],
  [
    'is broken by the upstream',
    ({ connection }) => {
      connection.open();
      return connection.receive('SSH-2.0-OpenSSH_9.2\r\n\r\n');
    },
  ],
  ['is aborted by its client', ({ leave }) => leave()],
  ['meets a bug', ({ relay }) => relay.abort(new TypeError('a bug'))],
])('client connection and deadlines keep no reference to a request that %s', async (_, end) => {
  const connected = connecting();
  expect(connected.watchers()).toBe(2);
  await end(connected);
  await connected.outcome.catch(() => {});
  expect(connected.watchers()).toBe(0);
});

test.each([
  [999_999, 2, ['sent']],
  [1_000_000, 1, []],
])('refused at %i ms, with a deadline of 1,000,000 ms, %i connections are tried', async (ms, attempts, retried) => {
  const urls = [new URL('http://192.0.2.1'), new URL('http://192.0.2.2')];
  const { outcome, connection, setTime, started, retries } = connecting(urls);
  setTime(ms);
  connection.destroy(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }));
  await new Promise((resolve) => connection.once('close', resolve));
  started[1]?.destroy(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }));
  expect(await outcome).toMatchObject({ kind: 'failed', failure: 'refused', wasSent: false });
  expect([started.length, retries]).toEqual([attempts, retried]);
});
