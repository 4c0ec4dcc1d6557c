import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { ConnectionPool } from '../../src/upstream/http1/connection-pool.ts';
import type { UpstreamConnection } from '../../src/upstream/http1/upstream-connection.ts';
import { holdConnections } from './support/held-connections.ts';
import { HeldTime } from './support/held-time.ts';
import { TestRequest } from './support/test-request.ts';

const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';

class SendingRequest extends TestRequest {
  override onConnection(connection: UpstreamConnection): boolean {
    connection.send('GET / HTTP/1.1\r\n\r\n', false, {
      onSend: () => true,
      onHead() {},
      onContent() {},
      onPause() {},
      onError() {},
    });
    return true;
  }
}

function openPool() {
  const { connect, begun } = holdConnections();
  const ends: (string | undefined)[] = [];
  const pool = new ConnectionPool({
    connect,
    maxConnections: 2,
    maxConnectionsPerCustomer: 2,
    maxWaitingPerCustomer: 0,
    maxHeaderBytes: 16_384,
    clock: new HeldTime(),
    onConnect: (error) => void ends.push(error?.message),
  });
  return { pool, begun, ends };
}

test('the load counts waiting requests and requests in progress, not free or opening connections', async () => {
  const { pool, begun } = openPool();
  const facts = (): number[] => [pool.load, pool.openCount];
  const [first, second, third] = [new SendingRequest(), new SendingRequest(), new SendingRequest()];
  for (const each of [first, second, third]) pool.take(each);
  expect(facts()).toEqual([3, 0]);
  pool.withdraw(third);
  expect(facts()).toEqual([2, 0]);
  begun[0]?.stand();
  expect(facts()).toEqual([2, 1]);
  begun[1]?.stand();
  await begun[0]?.receive(ANSWER);
  expect(facts()).toEqual([1, 2]);
  pool.take(new SendingRequest());
  expect(facts()).toEqual([2, 2]);
  await begun[1]?.receive(ANSWER);
  await begun[0]?.receive(ANSWER);
  expect(facts()).toEqual([0, 2]);
  pool.probe();
  expect(facts()).toEqual([0, 2]);
});

test('every connection reports once whether it was opened', async () => {
  const { pool, begun, ends } = openPool();
  pool.probe();
  pool.probe();
  begun[0]?.stand();
  begun[0]?.destroy(new Error('later'));
  begun[1]?.destroy(new Error('refused'));
  await new Promise((resolve) => begun[1]?.once('close', resolve));
  expect(ends).toEqual([undefined, 'refused']);
});

test('a request that needs a new connection gets one before free connections and waiting requests', async () => {
  const { pool, begun } = openPool();
  pool.take(new SendingRequest());
  begun[0]?.stand();
  await begun[0]?.receive(ANSWER);
  pool.take(new SendingRequest(), true);
  expect([begun.length, pool.load]).toEqual([2, 1]);
  begun[1]?.stand();
  await setImmediate();
  expect(begun[1]?.sent).not.toBe('');
  pool.take(new SendingRequest());
  pool.take(new SendingRequest());
  pool.take(new SendingRequest(), true);
  expect([begun.length, pool.load]).toEqual([2, 4]);
  await begun[0]?.receive(ANSWER);
  expect([begun[0]?.destroyed, begun.length, pool.load]).toEqual([true, 3, 3]);
  begun[2]?.stand();
  await setImmediate();
  expect(begun[2]?.sent).not.toBe('');
});

test('if all connections are free, one is closed to make room for a new one', async () => {
  const { pool, begun } = openPool();
  pool.take(new SendingRequest());
  pool.take(new SendingRequest());
  for (const each of begun) each.stand();
  for (const each of begun) await each.receive(ANSWER);
  pool.take(new SendingRequest(), true);
  expect([begun.map((each) => each.destroyed), pool.load]).toEqual([[true, false, false], 1]);
});
