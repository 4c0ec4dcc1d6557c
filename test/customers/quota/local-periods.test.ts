/** Days and months while the store is away: how much one gateway admits of one, in all outages. */
import { describe, expect, test } from 'vitest';
import type { Admission, QuotaSettings } from '../../../src/customers/quota/hourly-quota.ts';
import type { LastReply } from '../../../src/customers/quota/leases.ts';
import { LocalWindows } from '../../../src/customers/quota/local-windows.ts';
import { limitCountOf, periodOf } from '../../../src/store/period-counts.ts';
import { type ChargedUnits, hourly, type PeriodLimit } from '../../../src/store/windows.ts';
import { Machine } from '../../../tools/simulator/machine.ts';
import { VirtualTime } from '../../../tools/simulator/virtual-time.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const REPORTED_MS = 1000;
const MONTH: PeriodLimit = { policy: 'monthly', amount: 120, beyond: 'refuse', anchorMs: 0, plan: 'starter' };

function setUp({
  instances = 3,
  hour = 100_000,
  ...period
}: Partial<PeriodLimit> & { instances?: number; hour?: number } = {}) {
  const time = new VirtualTime();
  const wallOriginMs = Date.UTC(2030, 0, 10);
  const machine = new Machine({ time, rate: 1, monotonicOriginMs: 5000, wallOriginMs, timerLatenessMs: () => 0 });
  let limit: PeriodLimit = { ...MONTH, ...period };
  const settings = (): QuotaSettings => ({ limits: [...hourly(hour), limit], usageResetAt: '' });
  const world = {
    storeIsUp: false,
    /** What the store counts in the period. */
    counted: 0,
    reports: [] as (PeriodLimit | undefined)[],
    state: {
      customer: 'acme',
      settings: settings(),
      lastReply: undefined as LastReply | undefined,
      leases: { refund: () => undefined },
    },
  };
  const countOf = () => {
    const count = { counted: world.counted, forgiven: 0, ...periodOf(limit, machine.nowMs()) };
    return limitCountOf(limit, count, machine.nowMs());
  };
  const local = new LocalWindows({
    windows: {
      charge: async (_customer, charged: readonly ChargedUnits[], period) => {
        world.reports.push(period);
        for (const { units } of charged) world.counted += units;
        return { used: 0, usedOfKeys: new Map(), period: countOf() };
      },
    },
    storeIsUp: () => world.storeIsUp,
    instances: () => instances,
    clock: machine,
    scheduler: machine,
  });
  return {
    time,
    world,
    admit: (units = 1): Admission => local.admit(world.state, units),
    /** How many are admitted until one is refused. */
    useUp(): number {
      let admitted = 0;
      while (admitted < 1000 && local.admit(world.state, 1).outcome === 'admitted') admitted++;
      return admitted;
    },
    /** The store replies that so many units are counted. */
    heard(counted: number): void {
      world.counted = counted;
      const none = { policy: 'hourly', free: hour, used: 0, waitMs: 0, epoch: 'e', holdEndMs: 0 } as const;
      world.state.lastReply = { counts: [none, countOf()], receivedAt: machine.monotonicMs() };
    },
    /** The store is back for long enough that all is reported, and goes away. */
    async recover(): Promise<void> {
      world.storeIsUp = true;
      await time.run(REPORTED_MS);
      world.storeIsUp = false;
    },
    change(changed: Partial<PeriodLimit>, others: Partial<QuotaSettings> = {}): void {
      limit = { ...limit, ...changed };
      world.state.settings = { ...settings(), ...others };
    },
  };
}

describe('the share of one gateway in a period', () => {
  test.each([
    { counted: undefined, instances: 3, share: 40 },
    { counted: undefined, instances: 7, share: 17 },
    { counted: 0, instances: 3, share: 40 },
    { counted: 100, instances: 3, share: 6 },
    { counted: 118, instances: 3, share: 0 },
    { counted: 120, instances: 1, share: 0 },
    { counted: 500, instances: 1, share: 0 },
  ])('with $counted of 120 counted is $share among $instances', ({ counted, share, instances }) => {
    const { useUp, heard } = setUp({ instances });
    if (counted !== undefined) heard(counted);
    expect(useUp()).toBe(share);
  });

  test('is bounded by that of the hour', () => {
    expect(setUp({ instances: 2, hour: 50 }).useUp()).toBe(25);
  });

  test('is that of the hour alone where the period allows more', () => {
    const { useUp, heard } = setUp({ instances: 2, hour: 50, beyond: 'allow' });
    heard(500);
    expect(useUp()).toBe(25);
  });

  test('is the same for all outages of the period', async () => {
    const { useUp, heard, recover } = setUp();
    heard(0);
    expect(useUp()).toBe(40);
    for (const counted of [40, 60]) {
      await recover();
      heard(counted);
      expect(useUp()).toBe(0);
    }
  });

  test('is what is left of it in the next outage, less what others used meanwhile', async () => {
    const { admit, useUp, heard, recover, world } = setUp();
    heard(0);
    for (let count = 0; count < 10; count++) admit();
    await recover();
    expect(world.counted).toBe(10);
    // Nobody else used any: as if there had been no recovery.
    heard(10);
    expect(useUp()).toBe(30);
    const other = setUp();
    other.heard(0);
    for (let count = 0; count < 10; count++) other.admit();
    await other.recover();
    other.heard(10 + 60);
    expect(other.useUp()).toBe(10);
  });

  test('survives hours without requests', async () => {
    const { useUp, time } = setUp();
    expect(useUp()).toBe(40);
    await time.run(5 * HOUR_MS);
    expect(useUp()).toBe(0);
  });

  test('begins anew with the next period, of which nothing is known', async () => {
    const { useUp, heard, time } = setUp();
    heard(118);
    expect(useUp()).toBe(0);
    await time.run(22 * DAY_MS - 1);
    expect(useUp()).toBe(0);
    await time.run(1);
    expect(useUp()).toBe(40);
  });

  test('begins anew after a reset, and follows a changed limit', () => {
    const { useUp, change } = setUp();
    expect(useUp()).toBe(40);
    change({}, { periodResetAt: 'now' });
    expect(useUp()).toBe(40);
    change({ amount: 240 }, { periodResetAt: 'now' });
    expect(useUp()).toBe(40);
  });

  test('takes a unit back whose request did not begin', () => {
    const { admit, useUp } = setUp();
    const admission = admit();
    expect(useUp()).toBe(39);
    if (admission.outcome === 'admitted') admission.settle(false);
    expect(useUp()).toBe(1);
  });
});

test('a refusal names the period, and says at most 30 s: the store may know better', () => {
  const { useUp, admit } = setUp();
  useUp();
  const refusal = admit();
  if (refusal.outcome !== 'refused') throw new Error('admitted');
  expect(refusal.violated).toMatchObject([{ policy: 'monthly', amount: 120 }]);
  expect(refusal.violated[0].endsAtMs).toBeUndefined();
  expect(refusal.resetSeconds(0)).toBe(30);
});

test('what was admitted is reported with the period', async () => {
  const { useUp, recover, world } = setUp();
  useUp();
  await recover();
  expect(world.reports).toEqual([MONTH]);
  expect(world.counted).toBe(40);
});
