/**
 * A client that pipelined more requests than limits.pipelined is not read until there is room. Where that happened in the
 * middle of a request head, limits.headers_timeout_ms ran on: a client that had sent everything was answered 408
 * `request_timeout`, and lost its last requests, because the gateway itself did not read them.
 */
import type { ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import { openSession, request } from '../limits/support.ts';
import { startSystem } from '../support/system.ts';

/** A system with a client whose requests, and part of one more, arrived; and another client's head was late meanwhile. */
async function startLongPipeline() {
  const held: ServerResponse[] = [];
  const { gateway, key } = await startSystem({
    config: { limits: { pipelined: 1, headers_timeout_ms: 1500 } },
    answer: (_req, res) => void held.push(res),
  });
  const session = await openSession(gateway.public);
  session.send(`${request(key).repeat(2)}GET /v1/conv`);
  await expect.poll(() => held.length).toBe(1);
  const slow = await openSession(gateway.public);
  slow.send('GET /v1/conv');
  await slow.closed;
  expect(slow.statuses()).toEqual([408]);
  const release = () => void held.shift()?.end();
  return { session, key, held, release };
}

it('a pipeline that the client sent completely is answered completely, however long the gateway did not read it', async () => {
  const { session, key, held, release } = await startLongPipeline();
  session.send(request(key).slice('GET /v1/conv'.length));
  for (let i = 0; i < 3; i++) {
    await expect.poll(() => held.length).toBe(1);
    release();
  }
  await expect.poll(() => session.statuses()).toEqual([200, 200, 200]);
  expect(session.isClosed()).toBe(false);
});

it('a head that stays incomplete although the gateway reads again is gets 408 nevertheless', async () => {
  const { session, held, release } = await startLongPipeline();
  release();
  await expect.poll(() => held.length).toBe(1);
  release();
  await session.closed;
  expect(session.statuses()).toEqual([200, 200, 408]);
});
