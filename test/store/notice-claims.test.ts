/**
 * Levels are claimed by one rule that exists twice, in TypeScript and in Lua. Both stores get the same random histories
 * and must store the same notices, whatever the clock does. The rule itself is held against a model that knows the whole
 * history.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDatabase } from '../../src/store/embedded/database.ts';
import { embeddedNotices } from '../../src/store/embedded/notices.ts';
import { type ClaimedLevel, claimLevels, rearmLevels } from '../../src/store/level-claims.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';

const START_MS = Date.UTC(2200, 0, 1);
const MINUTE_MS = 60_000;
const LEVELS = [80, 95, 100];
const CLOCK_LINE = "local time = call('TIME')";

type Step =
  | { readonly kind: 'claim'; readonly advanceMs: number; readonly level: number; readonly limit: number }
  | { readonly kind: 'look'; readonly advanceMs: number; readonly used: number; readonly limit: number }
  | { readonly kind: 'once'; readonly advanceMs: number; readonly mark: string; readonly lastsMs: number };

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

function steps(goesBack: boolean): fc.Arbitrary<Step[]> {
  const forward = fc.oneof(
    { weight: 3, arbitrary: fc.nat(2 * MINUTE_MS) },
    { weight: 2, arbitrary: fc.nat(80 * MINUTE_MS) },
    { weight: 1, arbitrary: fc.constantFrom(60 * MINUTE_MS, 60 * MINUTE_MS - 1) },
  );
  const back = fc.nat(200 * MINUTE_MS).map((ms) => -ms);
  const advanceMs = goesBack ? fc.oneof({ weight: 6, arbitrary: forward }, { weight: 1, arbitrary: back }) : forward;
  const limit = fc.oneof({ weight: 6, arbitrary: fc.constant(1000) }, { weight: 1, arbitrary: fc.constant(40) });
  const claim = fc.record({ kind: fc.constant('claim' as const), advanceMs, level: fc.constantFrom(...LEVELS), limit });
  const used = fc.oneof(fc.nat(1100), fc.constantFrom(700, 701, 850, 851, 900, 901));
  const look = fc.record({ kind: fc.constant('look' as const), advanceMs, used, limit });
  const once = fc.record({
    kind: fc.constant('once' as const),
    advanceMs,
    mark: fc.constantFrom('key_1:7', 'key_1:1', 'key.*'),
    lastsMs: fc.nat(90 * MINUTE_MS),
  });
  const step = fc.oneof(
    { weight: 4, arbitrary: claim },
    { weight: 4, arbitrary: look },
    { weight: 1, arbitrary: once },
  );
  return fc.array(step, { minLength: 10, maxLength: 50 });
}

function script(file: string): string {
  const text = readFileSync(new URL(`../../src/store/redis/notices/${file}`, import.meta.url), 'utf8');
  if (text.split(CLOCK_LINE).length !== 2) throw new Error('a script must read the clock in exactly one line');
  return text.replace(CLOCK_LINE, "local time = call('LRANGE', 'test:clock', 0, 1)");
}

test('Lua and the embedded store store the same notices for the same history', async () => {
  const [claimLevel, rearm, addOnce] = ['claim-level.lua', 'rearm.lua', 'add-once.lua'].map(script);
  const run = async (lua: string | undefined, nowMs: number, ...args: (string | number)[]) => {
    await redis.command('DEL', 'test:clock');
    await redis.command('RPUSH', 'test:clock', Math.floor(nowMs / 1000), (nowMs % 1000) * 1000);
    return redis.command('EVAL', lua ?? '', 1, `notices-${keyNumber}`, ...args);
  };
  await fc.assert(
    fc.asyncProperty(steps(true), async (history) => {
      keyNumber += 1;
      let nowMs = START_MS;
      const database = openDatabase(join(folder, `${keyNumber}.db`));
      const embedded = embeddedNotices({ database, run: async (_op, work) => work(), clock: { nowMs: () => nowMs } });
      for (const [index, step] of history.entries()) {
        nowMs += step.advanceMs;
        const notice = { id: `msg_${index}`, content: String(index) };
        if (step.kind === 'claim') {
          const { level, limit } = step;
          const isNew = await embedded.claimLevel({ customer: 'acme', level, levels: LEVELS, limit, notice });
          const args = [notice.id, notice.content, limit, level, ...LEVELS];
          expect(await run(claimLevel, nowMs, ...args), `step ${index}`).toBe(Number(isNew));
        } else if (step.kind === 'look') {
          await embedded.rearm('acme', step);
          await run(rearm, nowMs, step.used, step.limit);
        } else {
          const markUntilMs = nowMs + step.lastsMs;
          const isNew = await embedded.addOnce({ customer: 'acme', mark: step.mark, markUntilMs, notice });
          const args = [notice.id, notice.content, step.mark, markUntilMs];
          expect(await run(addOnce, nowMs, ...args), `step ${index}`).toBe(Number(isNew));
        }
      }
      const stored = (await redis.command('HKEYS', `notices-${keyNumber}`)) as string[];
      const { items } = await embedded.list('pending', 0, 100);
      expect(stored.filter((field) => field.startsWith('notice:')).sort()).toEqual(
        items.map(({ id }) => `notice:${id}`).sort(),
      );
      database.close();
    }),
    { numRuns: 60 },
  );
}, 120_000);

test('a level is told again only under a limit that is new within the hour, or an hour later if usage fell ten points below it', () => {
  fc.assert(
    fc.property(steps(false), (history) => {
      const claims = new Map<number, ClaimedLevel>();
      /** When each level was claimed last, under which limit, the one before, and the lowest usage seen since, in percent. */
      const model = new Map<number, { atMs: number; limit: number; former: number | undefined; lowest: number }>();
      let nowMs = START_MS;
      for (const step of history) {
        nowMs += step.advanceMs;
        if (step.kind === 'look') {
          rearmLevels(claims, step, nowMs);
          const percent = (100 * step.used) / step.limit;
          for (const [level, seen] of model) {
            seen.lowest = Math.min(seen.lowest, percent);
            // The claim is over, and the former limit forgotten with it.
            if (nowMs - seen.atMs >= 60 * MINUTE_MS && seen.lowest <= level - 10) model.delete(level);
          }
        } else if (step.kind === 'claim') {
          const { limit } = step;
          const isArmed = (level: number) => {
            const last = model.get(level);
            if (last === undefined) return true;
            const isOld = nowMs - last.atMs >= 60 * MINUTE_MS;
            return last.limit === limit ? isOld && last.lowest <= level - 10 : isOld || last.former !== limit;
          };
          const armed = LEVELS.filter((level) => level <= step.level && isArmed(level));
          expect(claimLevels(claims, { ...step, levels: LEVELS }, nowMs)).toBe(armed.includes(step.level));
          for (const level of armed) {
            const last = model.get(level);
            const former = last?.limit === limit ? last.former : last?.limit;
            model.set(level, { atMs: nowMs, limit, former, lowest: Number.POSITIVE_INFINITY });
          }
        }
      }
    }),
    { numRuns: 2000 },
  );
});

test('gateways with different limits for a customer cause one notice each, not one after the other', () => {
  const claims = new Map<number, ClaimedLevel>();
  let told = 0;
  for (let minute = 0; minute < 60; minute++) {
    const limit = minute % 2 === 0 ? 1000 : 800;
    told += Number(claimLevels(claims, { level: 80, levels: LEVELS, limit }, START_MS + minute * MINUTE_MS));
  }
  expect(told).toBe(2);
});
