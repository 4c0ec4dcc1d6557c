/** What is read of stored periods, whoever wrote them, and that those that are over stay as they are. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { uniqueIds } from '../../src/base/unique-ids.ts';
import { embeddedWindows } from '../../src/store/embedded/windows.ts';
import { periodsFrom } from '../../src/store/period-reader.ts';
import { DAY_MS, HOUR_MS } from '../../src/store/usage-history.ts';
import { hourly, type PeriodLimit } from '../../src/store/windows.ts';
import { openEmbeddedContext } from '../support/embedded-context.ts';

const PERIOD = { plan: 'pro', startMs: 100 * HOUR_MS, endMs: 800 * HOUR_MS, included: 10 };
const read = (fields: Readonly<Record<string, string>>) => periodsFrom(Object.entries(fields));

test('a period is what its fields say, and what a reset forgave is less overage, not less used', () => {
  const stored = { '100': '25', '100:at': '800 10 allow pro', d90: '3', 'd90:at': '114 5 refuse free' };
  const day = {
    plan: 'free',
    startMs: 90 * HOUR_MS,
    endMs: 114 * HOUR_MS,
    included: 5,
    used: 3,
    forgiven: 0,
    overage: 0,
  };
  expect(read(stored)).toEqual({ periods: [day, { ...PERIOD, used: 25, forgiven: 0, overage: 15 }], isDamaged: false });
  expect(read({ ...stored, '100:forgiven': '4' }).periods[1]).toEqual({
    ...PERIOD,
    used: 25,
    forgiven: 4,
    overage: 11,
  });
  expect(read({ ...stored, '100:forgiven': '25' }).periods[1]).toEqual({
    ...PERIOD,
    used: 25,
    forgiven: 25,
    overage: 0,
  });
});

test('a period of which all units came back is none', () => {
  expect(read({ '100:at': '800 10 allow pro', '100:forgiven': '0' })).toEqual({ periods: [], isDamaged: false });
});

test.each([
  ['a count that is no number', { '200': 'many', '200:at': '300 10 allow pro' }],
  ['a count below 0', { '200': '-5', '200:at': '300 10 allow pro' }],
  ['a count beyond what is exact', { '200': '9007199254740993', '200:at': '300 10 allow pro' }],
  ['a count without its period', { '200': '5' }],
  ['an end before the start', { '200': '5', '200:at': '150 10 allow pro' }],
  ['a plan of other characters', { '200': '5', '200:at': '300 10 allow a,b"\n=1' }],
  ['an unknown word', { '200': '5', '200:at': '300 10 maybe pro' }],
  ['an unreadable reset', { '200': '5', '200:at': '300 10 allow pro', '200:forgiven': 'x' }],
  ['a start beyond all calendars', { '99999999': '5', '99999999:at': '999999999 10 allow pro' }],
  ['a field of another program', { note: 'call them' }],
])('%s is left out, and the periods beside it are read', (_what, damage) => {
  const beside = { '100': '25', '100:at': '800 10 allow pro' };
  expect(read({ ...damage, ...beside })).toEqual({
    periods: [{ ...PERIOD, used: 25, forgiven: 0, overage: 15 }],
    isDamaged: true,
  });
});

test('the periods of a customer add up to its units, and do not change from 30 seconds after their ends on', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-periods-'));
  const newId = uniqueIds();
  let nowMs = 0;
  const context = openEmbeddedContext(join(folder, 'store.sqlite'), () => nowMs);
  onTestFinished(async () => {
    context.database.close();
    await rm(folder, { recursive: true });
  });
  const { windows, periods } = embeddedWindows(context, { newEpoch: newId });
  const limitOf = (policy: PeriodLimit['policy'], hour: number): PeriodLimit => {
    return { policy, amount: 20, beyond: 'allow', anchorMs: hour * HOUR_MS, plan: 'pro' };
  };
  const step = fc.record({
    passes: fc.constantFrom('seconds', 'seconds', 'seconds', 'days', 'to the next midnight'),
    passesMs: fc.integer({ min: 0, max: 15_000 }),
    limit: fc.record({ policy: fc.constantFrom('daily', 'monthly'), hour: fc.constantFrom(0, 7, 24 * 30) }),
    what: fc.constantFrom('reserve', 'refund', 'refund', 'charge'),
    units: fc.integer({ min: 1, max: 9 }),
  });
  let customers = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 40 }), async (steps) => {
      const customer = `customer-${customers++}`;
      nowMs = Date.UTC(2026, 0, 31, 5);
      let counted = 0;
      const closed = new Map<string, object>();
      const granted: { grant: string; units: number; returned: number }[] = [];
      for (const { passes, passesMs, limit, what, units } of steps) {
        // Around the end of a period, refunds change sides.
        if (passes === 'to the next midnight') nowMs = Math.ceil(nowMs / DAY_MS + 0.01) * DAY_MS - passesMs;
        else nowMs += passes === 'days' ? passesMs * 10_000 : passesMs;
        const period = limitOf(limit.policy as PeriodLimit['policy'], limit.hour);
        const grant = newId();
        const open = granted.at(-1);
        if (what === 'refund' && open !== undefined && open.returned < open.units) {
          open.returned += 1;
          const before = sumOf(await periods.periodsOf([customer]));
          await windows.refund(customer, [{ grant: open.grant, units: open.returned, isFinal: false }]);
          const came = before - sumOf(await periods.periodsOf([customer]));
          // A late refund is from the present period, which may have counted nothing.
          expect([0, 1]).toContain(came);
          counted -= came;
        } else if (what === 'charge') {
          await windows.charge(customer, [{ grant, ageMs: 0, units }], period);
          counted += units;
        } else {
          const limits = [...hourly(1000), period] as const;
          const { granted: got } = await windows.reserve({
            ...{ customer, grant, need: units, ahead: 0, limits, holdMs: 1000, refunds: [] },
          });
          counted += got;
          granted.push({ grant, units: got, returned: 0 });
        }
        const openFromMs = await periods.openFromMs();
        const stored = (await periods.periodsOf([customer]))[0]?.periods ?? [];
        for (const each of stored.filter(({ endMs }) => endMs <= openFromMs)) {
          const id = `${each.startMs} ${each.endMs}`;
          expect(each).toEqual(closed.get(id) ?? each);
          closed.set(id, each);
        }
      }
      const [all] = await periods.periodsOf([customer]);
      const kept = new Set(all?.periods.map(({ startMs, endMs }) => `${startMs} ${endMs}`));
      const dropped = [...closed].filter(([id]) => !kept.has(id)).map(([, each]) => each as { used: number });
      expect(all?.isDamaged).toBe(false);
      const usedOf = (list: readonly { readonly used: number }[] = []) => list.reduce((sum, { used }) => sum + used, 0);
      expect(usedOf(all?.periods) + usedOf(dropped)).toBe(counted);
    }),
    { numRuns: 100 },
  );
});

function sumOf(customers: readonly { readonly periods: readonly { readonly used: number }[] }[]): number {
  return customers.flatMap(({ periods }) => periods).reduce((sum, { used }) => sum + used, 0);
}
