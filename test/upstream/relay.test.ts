import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import { expect, test } from 'vitest';
import { ConnectionSlots } from '../../src/upstream/connection-slots.ts';
import { Relay } from '../../src/upstream/relay.ts';

/** A relay whose connection is still being made: moments that real connections pass too fast to be met. */
function connecting() {
  let nowMs = 0;
  const socket = new Socket();
  const req = new IncomingMessage(socket);
  const slots = new ConnectionSlots(1);
  const watched = new Set<() => void>();
  const controller = { abort: () => {} } as unknown as Dispatcher.DispatchController;
  const relay = new Relay(
    req,
    new ServerResponse(req),
    {
      path: '/',
      headers: [],
      beginBefore: 1_000_000,
      beginBeforeWallMs: Number.POSITIVE_INFINITY,
      answerHeaders: () => [],
    },
    {
      pool: { dispatch: () => true } as unknown as Dispatcher,
      servername: undefined,
      slots,
      callers: {
        watch: (_socket, onGone) => void watched.add(onGone),
        unwatch: (_socket, onGone) => void watched.delete(onGone),
      },
      ownAnswerNames: new Set(),
      responseTimeoutMs: 1_000_000,
      totalTimeoutMs: 2_000_000,
      clock: { nowMs: () => 0, monotonicMs: () => nowMs },
    },
  );
  relay.start('/');
  return {
    relay,
    slots,
    begin: () => relay.onRequestStart(controller),
    watched,
    leave: () => {
      for (const onGone of watched) onGone();
    },
    setTime: (ms: number) => {
      nowMs = ms;
    },
  };
}

test('a connection that stands after the caller has left is not used, and its slot is taken until then', async () => {
  const { relay, slots, begin, leave } = connecting();
  leave();
  expect(await relay.outcome).toMatchObject({ kind: 'client_gone', begun: false });
  let free = false;
  const idle = slots.idle().then(() => {
    free = true;
  });
  await setImmediate();
  expect(free).toBe(false);
  expect(begin).toThrow('over');
  relay.onResponseError(null, new Error('undici reports what was thrown'));
  await idle;
});

test('the time to begin is looked at once more when the connection stands', async () => {
  const { relay, begin, setTime } = connecting();
  setTime(1_000_000);
  expect(begin).toThrow('too late');
  expect(await relay.outcome).toMatchObject({ kind: 'failed', failure: 'dispatch_timeout', begun: false });
});

test('a request begins up to the last moment', () => {
  const { relay, begin, setTime, leave } = connecting();
  setTime(999_999);
  begin();
  leave();
  return expect(relay.outcome).resolves.toMatchObject({ kind: 'client_gone', begun: true });
});

test('a bug before the request began rejects and lets the connection go unused', async () => {
  const { relay, begin } = connecting();
  relay.giveUp(new TypeError('a bug'));
  await expect(relay.outcome).rejects.toThrow('a bug');
  expect(begin).toThrow('over');
});

test('a caller connection that lives on keeps nothing of a request that is over', async () => {
  const { relay, watched, begin, setTime } = connecting();
  expect(watched.size).toBe(1);
  setTime(1_000_000);
  expect(begin).toThrow('too late');
  await relay.outcome;
  expect(watched.size).toBe(0);
});
