import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { Timed } from '../../src/upstream/deadlines.ts';
import { RequestBody } from '../../src/upstream/request-body.ts';

/** A body that flows, whose clock and deadlines the test drives. */
async function startBody() {
  const clock = { ms: 0, nowMs: () => clock.ms, monotonicMs: () => clock.ms };
  let watched: Timed | undefined;
  const deadlines = {
    watch(timed: Timed) {
      watched = timed;
    },
    unwatch() {
      watched = undefined;
    },
  };
  const req = Object.assign(new PassThrough(), { socket: new PassThrough() });
  const limits = { maxBytes: 1_000_000, stallTimeoutMs: 30_000 };
  const body = new RequestBody(req as unknown as IncomingMessage, 10_000_000, { ...limits, deadlines, clock });
  const start = body.buffer(10_000);
  async function send(bytes: number): Promise<void> {
    req.write(Buffer.alloc(bytes));
    await setImmediate();
  }
  await send(16_384);
  expect(await start).toBeUndefined();
  body.attach({ onBodyBytes() {}, onBodyEnd() {}, onBodyFault() {} });
  body.flow();
  return {
    body,
    send,
    /** Lets seconds pass one by one, and so many bytes arrive in each. */
    async pass(seconds: number, bytesPerSecond: number): Promise<void> {
      for (let i = 0; i < seconds; i++) {
        if (bytesPerSecond > 0) await send(bytesPerSecond);
        clock.ms += 1_000;
        if (watched !== undefined && clock.ms >= watched.deadlineMs) {
          const due = watched;
          watched = undefined;
          due.onDeadline();
        }
      }
    },
  };
}

it('a body that arrives at a mean below 500 bytes a second ends after its first minute', async () => {
  const { body, pass } = await startBody();
  await pass(59, 100);
  expect(body.fault).toBeUndefined();
  await pass(2, 100);
  expect(body.fault).toBe('body_timeout');
});

it('a body that arrives at a mean of 500 bytes a second or more goes on', async () => {
  const { body, pass } = await startBody();
  await pass(600, 500);
  expect(body.fault).toBeUndefined();
  // What arrived sooner counts: the mean is over the whole body.
  await pass(25, 1);
  expect(body.fault).toBeUndefined();
});

it('time in which the gateway does not read, because the backend takes no more, does not count', async () => {
  const { body, pass } = await startBody();
  await pass(50, 400);
  body.pause();
  await pass(3_600, 0);
  body.resume();
  await pass(9, 400);
  expect(body.fault).toBeUndefined();
});
