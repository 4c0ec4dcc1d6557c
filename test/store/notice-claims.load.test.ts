/**
 * Marks of notices are set and extended by one rule that exists twice, in SQL and in Lua. Both stores get the same random
 * histories and must store the same notices, whatever the clock does.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { embeddedNotices } from '../../src/store/embedded/notices.ts';
import type { Marks } from '../../src/store/notices.ts';
import { scriptText } from '../../src/store/redis/connection/client.ts';
import { openEmbeddedContext } from '../support/embedded-context.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';

const START_MS = Date.UTC(2200, 0, 1);
const MINUTE_MS = 60_000;
const CLOCK_LINE = "local time = call('TIME')";

let redis: RedisServer;
let keyNumber = 0;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-claims-'));
  redis = await startRedis();
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await redis.stop();
});

const mark = fc.constantFrom('level:1000:80', 'level:1000:95', 'level:40:80', 'key_1:7', 'key.*');
const step = fc.record({
  kind: fc.constantFrom('add', 'extend'),
  advanceMs: fc.oneof(
    { weight: 3, arbitrary: fc.nat(2 * MINUTE_MS) },
    { weight: 2, arbitrary: fc.nat(80 * MINUTE_MS) },
    { weight: 1, arbitrary: fc.constantFrom(60 * MINUTE_MS, 60 * MINUTE_MS - 1) },
    { weight: 1, arbitrary: fc.nat(200 * MINUTE_MS).map((ms) => -ms) },
  ),
  marks: fc.uniqueArray(mark, { minLength: 1, maxLength: 3 }) as unknown as fc.Arbitrary<Marks['marks']>,
  lastsMs: fc.oneof(fc.constant(60 * MINUTE_MS), fc.integer({ min: -MINUTE_MS, max: 90 * MINUTE_MS })),
});

function script(file: string): string {
  const text = scriptText(new URL(`../../src/store/redis/notices/${file}`, import.meta.url));
  if (text.split(CLOCK_LINE).length !== 2) throw new Error('a script must read the clock in exactly one line');
  return text.replace(CLOCK_LINE, "local time = call('LRANGE', 'test:clock', 0, 1)");
}

test('Lua and the embedded store store the same notices for the same history', async () => {
  const [addOnce, extendMarks] = ['add-once.lua', 'extend-marks.lua'].map(script);
  const run = async (lua: string | undefined, nowMs: number, ...args: (string | number)[]) => {
    await redis.command('DEL', 'test:clock');
    await redis.command('RPUSH', 'test:clock', Math.floor(nowMs / 1000), (nowMs % 1000) * 1000);
    return redis.command('EVAL', lua ?? '', 1, `notices-${keyNumber}`, ...args);
  };
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 50 }), async (history) => {
      keyNumber += 1;
      let nowMs = START_MS;
      const context = openEmbeddedContext(join(folder, `${keyNumber}.db`), () => nowMs);
      const embedded = embeddedNotices(context);
      for (const [index, { kind, advanceMs, marks, lastsMs }] of history.entries()) {
        nowMs += advanceMs;
        const given = { customer: 'acme', marks, untilMs: nowMs + lastsMs };
        if (kind === 'add') {
          const notice = { id: `msg_${index}`, content: String(index) };
          const isNew = await embedded.addOnce({ ...given, notice });
          const args = [notice.id, notice.content, given.untilMs, ...marks];
          expect(await run(addOnce, nowMs, ...args), `step ${index}`).toBe(Number(isNew));
        } else {
          const counts = await embedded.extend(given);
          expect(await run(extendMarks, nowMs, given.untilMs, ...marks), `step ${index}`).toBe(Number(counts));
        }
      }
      const stored = (await redis.command('HKEYS', `notices-${keyNumber}`)) as string[];
      const { items } = await embedded.list('pending', 0, 100);
      expect(stored.filter((field) => field.startsWith('notice:')).sort()).toEqual(
        items.map(({ id }) => `notice:${id}`).sort(),
      );
      context.database.close();
    }),
    { numRuns: 60 },
  );
}, 120_000);

test('a mark that another program damaged counts no more, and the claims of former versions do no harm', async () => {
  const [addOnce = '', extendMarks = ''] = ['add-once.lua', 'extend-marks.lua'].map((file) =>
    scriptText(new URL(`../../src/store/redis/notices/${file}`, import.meta.url)),
  );
  await redis.command('HSET', 'damaged', 'mark:a', 'x', 'level:80', '1000 1795334400000 0 0');
  const untilMs = Date.now() + MINUTE_MS;
  expect(await redis.command('EVAL', extendMarks, 1, 'damaged', untilMs, 'a')).toBe(0);
  expect(await redis.command('EVAL', addOnce, 1, 'damaged', 'msg_1', '{}', untilMs, 'a')).toBe(1);
  expect(await redis.command('EVAL', extendMarks, 1, 'damaged', untilMs, 'a')).toBe(1);
});
