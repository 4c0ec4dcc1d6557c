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
  const { connect, started } = holdConnections();
  const ends: (string | undefined)[] = [];
  const pool = new ConnectionPool({
    connect,
    maxConnections: 2,
    maxConnectionsPerCustomer: 2,
    maxWaitingPerCustomer: () => 0,
    maxHeaderBytes: 16_384,
    clock: new HeldTime(),
    onConnect: (error) => void ends.push(error?.message),
  });
  return { pool, started, ends };
}

test('the load counts waiting requests and requests in progress, not free or opening connections', async () => {
  const { pool, started } = openPool();
  const facts = (): number[] => [pool.load, pool.openCount];
  const [first, second, third] = [new SendingRequest(), new SendingRequest(), new SendingRequest()];
  for (const each of [first, second, third]) pool.take(each);
  expect(facts()).toEqual([3, 0]);
  pool.withdraw(third);
  expect(facts()).toEqual([2, 0]);
  started[0]?.open();
  expect(facts()).toEqual([2, 1]);
  started[1]?.open();
  await started[0]?.receive(ANSWER);
  expect(facts()).toEqual([1, 2]);
  pool.take(new SendingRequest());
  expect(facts()).toEqual([2, 2]);
  await started[1]?.receive(ANSWER);
  await started[0]?.receive(ANSWER);
  expect(facts()).toEqual([0, 2]);
  pool.probe();
  expect(facts()).toEqual([0, 2]);
});

test('every connection reports once whether it was opened', async () => {
  const { pool, started, ends } = openPool();
  pool.probe();
  pool.probe();
  started[0]?.open();
  started[0]?.destroy(new Error('later'));
  started[1]?.destroy(new Error('refused'));
  await new Promise((resolve) => started[1]?.once('close', resolve));
  expect(ends).toEqual([undefined, 'refused']);
});

test('a request that needs a new connection gets one before free connections and waiting requests', async () => {
  const { pool, started } = openPool();
  pool.take(new SendingRequest());
  started[0]?.open();
  await started[0]?.receive(ANSWER);
  pool.take(new SendingRequest(), true);
  expect([started.length, pool.load]).toEqual([2, 1]);
  started[1]?.open();
  await setImmediate();
  expect(started[1]?.sent).not.toBe('');
  pool.take(new SendingRequest());
  pool.take(new SendingRequest());
  pool.take(new SendingRequest(), true);
  expect([started.length, pool.load]).toEqual([2, 4]);
  await started[0]?.receive(ANSWER);
  expect([started[0]?.destroyed, started.length, pool.load]).toEqual([true, 3, 3]);
  started[2]?.open();
  await setImmediate();
  expect(started[2]?.sent).not.toBe('');
});

test('if all connections are free, one is closed to make room for a new one', async () => {
  const { pool, started } = openPool();
  pool.take(new SendingRequest());
  pool.take(new SendingRequest());
  for (const each of started) each.open();
  for (const each of started) await each.receive(ANSWER);
  pool.take(new SendingRequest(), true);
  expect([started.map((each) => each.destroyed), pool.load]).toEqual([[true, false, false], 1]);
});
