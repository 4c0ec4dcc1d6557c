import { describe, expect, it } from 'vitest';
import { type KeyUse, KeyUses, NEVER_NOTED } from '../../../src/customers/keys/key-uses.ts';

const FLUSH_MS = 10_000;
const START_MS = Date.parse('2026-03-01T12:00:00Z');

interface Use {
  readonly keyId: string;
  readonly usedAtMs: number;
}

/** A store whose answers come when the test says so, and time that passes flush by flush. */
function setUp() {
  const calls: { uses: readonly Use[]; answer: (error?: Error) => void }[] = [];
  let nowMs = START_MS;
  let pending: (() => void) | undefined;
  const keyUses = new KeyUses({
    store: {
      noteUses: (uses) =>
        new Promise((resolve, reject) => {
          calls.push({ uses, answer: (error) => (error ? reject(error) : resolve()) });
        }),
    },
    clock: { nowMs: () => nowMs },
    scheduler: {
      after(delayMs, action) {
        expect(delayMs).toBe(FLUSH_MS);
        pending = action;
        return {
          cancel: () => {
            pending = undefined;
          },
        };
      },
    },
  });
  const uses = new Map<string, KeyUse>();
  return {
    note(keyId: string) {
      const key = { id: keyId };
      const use = uses.get(keyId) ?? { key, sha256: `sha256 of ${keyId}`, flushesWhenNoted: NEVER_NOTED };
      uses.set(keyId, use);
      keyUses.note(use);
    },
    close: () => keyUses.close(),
    calls,
    written: () => calls.map(({ uses }) => uses.map(({ keyId }) => keyId)),
    async passFlush(times = 1) {
      for (let i = 0; i < times; i++) {
        nowMs += FLUSH_MS;
        pending?.();
        await settled();
      }
    },
    isScheduled: () => pending !== undefined,
    advance(ms: number) {
      nowMs += ms;
    },
  };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));
const ids = (count: number, prefix = 'key') => Array.from({ length: count }, (_, i) => `${prefix}-${i}`);

describe('the uses of keys', () => {
  it('are written together, in one call, with the time of each', async () => {
    const { note, calls, advance, passFlush } = setUp();
    note('a');
    advance(1000);
    note('b');
    note('a');
    expect(calls).toEqual([]);
    await passFlush();
    expect(calls.map(({ uses }) => uses)).toEqual([
      [
        { keyId: 'a', sha256: 'sha256 of a', usedAtMs: START_MS },
        { keyId: 'b', sha256: 'sha256 of b', usedAtMs: START_MS + 1000 },
      ],
    ]);
  });

  it('cost no call while there are none', async () => {
    const { calls, passFlush } = setUp();
    await passFlush(10);
    expect(calls).toEqual([]);
  });

  it('of one key are written at most once a minute, and again after little more', async () => {
    const { note, calls, written, passFlush } = setUp();
    for (let flush = 0; flush < 15; flush++) {
      note('a');
      await passFlush();
      for (const { answer } of calls) answer();
      await settled();
    }
    expect(written()).toEqual([['a'], ['a'], ['a']]);
    const times = calls.map(({ uses }) => uses[0]?.usedAtMs ?? 0);
    expect(times.map((time) => time - START_MS)).toEqual([0, 70_000, 140_000]);
  });

  it('are dropped when the store fails, and the next ones are written all the same', async () => {
    const { note, calls, written, passFlush } = setUp();
    note('a');
    await passFlush();
    calls[0]?.answer(new Error('away'));
    await settled();
    note('b');
    await passFlush();
    expect(written()).toEqual([['a'], ['b']]);
  });

  it('that wait are never more than 1000, written at once when there are as many', async () => {
    const { note, calls, written } = setUp();
    for (const id of ids(1500)) note(id);
    expect(calls).toHaveLength(1);
    // What came since is written when the call before it is answered and there is a whole call of it.
    for (const id of ids(1500, 'more')) note(id);
    expect(calls).toHaveLength(1);
    calls[0]?.answer();
    await settled();
    expect(written().map(({ length }) => length)).toEqual([1000, 1000]);
    expect(written()[1]?.slice(0, 501)).toEqual([...ids(1500).slice(1000), 'more-0']);
  });

  it('of a key that found no room are noted the next time', async () => {
    const { note, calls, written, passFlush } = setUp();
    for (const id of ids(2001)) note(id);
    calls[0]?.answer();
    await settled();
    calls[1]?.answer();
    await settled();
    note('key-2000');
    note('key-1999');
    await passFlush();
    expect(written()[2]).toEqual(['key-2000']);
  });

  it('wait while the store is slow: one call at a time', async () => {
    const { note, calls, written, passFlush } = setUp();
    note('a');
    await passFlush();
    note('b');
    await passFlush(3);
    expect(written()).toEqual([['a']]);
    calls[0]?.answer();
    await settled();
    await passFlush();
    expect(written()).toEqual([['a'], ['b']]);
  });

  it('are written at close, which waits for them, and nothing is done after it', async () => {
    const { note, close, calls, written, passFlush, isScheduled } = setUp();
    note('a');
    await passFlush();
    note('b');
    let closed = false;
    const closing = close().then(() => {
      closed = true;
    });
    await settled();
    expect(written()).toEqual([['a']]);
    calls[0]?.answer();
    await settled();
    expect(written()).toEqual([['a'], ['b']]);
    expect(closed).toBe(false);
    calls[1]?.answer(new Error('away'));
    await closing;
    expect(isScheduled()).toBe(false);
  });
});
