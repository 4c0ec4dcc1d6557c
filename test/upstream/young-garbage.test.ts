/**
 * What every exchange is entered into and taken out of must not keep those that are over from the collector of young
 * objects: it would copy them into the old generation, one by one, which once was a seventh of all CPU time.
 */
import { Socket } from 'node:net';
import { getHeapSpaceStatistics } from 'node:v8';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { unwatchDisconnect, watchDisconnect } from '../../src/upstream/client-disconnect.ts';
import { Deadlines } from '../../src/upstream/deadlines.ts';
import { RequestQueue } from '../../src/upstream/http1/request-queue.ts';
import { TestRequest } from './support/test-request.ts';

const EXCHANGES = 50_000;
const UNDER_WAY = 64;
const BYTES_EACH = 1024;
const MOST_PROMOTED_BYTES = (EXCHANGES * BYTES_EACH) / 10;

class TestExchange extends TestRequest {
  deadlineMs = Infinity;
  watchedAt: number | undefined;
  readonly content = new Array<number>(BYTES_EACH / 8).fill(0.5);
  onDeadline(): void {}
  onClientGone(): void {}
}

function oldBytes(): number {
  return getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space')?.space_used_size ?? 0;
}

/** As a quiet while does: what is held now is moved to the old generation. */
function age(): void {
  const last: TestExchange[] = [];
  for (let count = 0; count < EXCHANGES; count += 1) last[0] = new TestExchange();
}

/** Begins and ends many, some of them at a time; by how much the old generation has grown. */
function promotedBytes(begin: (exchange: TestExchange) => void, end: (exchange: TestExchange) => void): number {
  const underWay: TestExchange[] = [];
  for (let count = 0; count < UNDER_WAY; count += 1) {
    const exchange = new TestExchange();
    begin(exchange);
    underWay.push(exchange);
  }
  age();
  const before = oldBytes();
  for (let count = 0; count < EXCHANGES; count += 1) {
    const exchange = new TestExchange();
    begin(exchange);
    const oldest = underWay[count % UNDER_WAY];
    if (oldest !== undefined) end(oldest);
    underWay[count % UNDER_WAY] = exchange;
  }
  for (const exchange of underWay) end(exchange);
  return oldBytes() - before;
}

test('deadlines keep no request that has ended', () => {
  const deadlines = new Deadlines(systemClock);
  const promoted = promotedBytes(
    (exchange) => deadlines.watch(exchange),
    (exchange) => deadlines.unwatch(exchange),
  );
  expect(promoted).toBeLessThan(MOST_PROMOTED_BYTES);
});

test('client connections keep no request that has ended', () => {
  const socket = new Socket();
  const promoted = promotedBytes(
    (exchange) => watchDisconnect(socket, exchange),
    (exchange) => unwatchDisconnect(socket, exchange),
  );
  expect(promoted).toBeLessThan(MOST_PROMOTED_BYTES);
});

test('the queue for connections keeps no request that has left it', () => {
  const queue = new RequestQueue();
  const promoted = promotedBytes(
    (exchange) => queue.add(exchange),
    () => void queue.shift(),
  );
  expect(promoted).toBeLessThan(MOST_PROMOTED_BYTES);
});
