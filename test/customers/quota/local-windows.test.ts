import { describe, expect, test } from 'vitest';
import type { Admission, QuotaSettings } from '../../../src/customers/quota/hourly-quota.ts';
import type { LastReply } from '../../../src/customers/quota/leases.ts';
import { LocalWindows } from '../../../src/customers/quota/local-windows.ts';
import type { OpenGrant } from '../../../src/customers/quota/open-grant.ts';
import { NotRunError, StoreUnavailableError } from '../../../src/store/errors.ts';
import { type ChargedUnits, hourly } from '../../../src/store/windows.ts';
import { Machine } from '../../../tools/simulator/machine.ts';
import { VirtualTime } from '../../../tools/simulator/virtual-time.ts';

const WINDOW_MS = 3_600_000;
/** A unit is counted until its bucket has ended, a window later. */
const DROPPED_MS = WINDOW_MS + 13_000;
const REPORTED_MS = 1000;

type Outcome = 'counted' | 'unknown' | 'refused';

function setUp({ limit = 12, instances = 3, rate = 1 } = {}) {
  const time = new VirtualTime();
  const machine = new Machine({
    time,
    rate,
    monotonicOriginMs: 5000,
    wallOriginMs: Date.UTC(2030, 0, 1),
    timerLatenessMs: () => 0,
  });
  const refunds: { readonly grant: string; readonly units: number }[] = [];
  const world = {
    time,
    state: {
      customer: 'acme',
      settings: { limits: hourly(limit), usageResetAt: '' } as QuotaSettings,
      lastReply: undefined as LastReply | undefined,
      leases: {
        refund: (grant: OpenGrant, units: number) => void (units > 0 && refunds.push({ grant: grant.id, units })),
      },
    },
    /** Of units that were charged. */
    refunds,
    storeIsUp: false,
    instances,
    outcome: 'counted' as Outcome,
    answered: Promise.resolve(),
    /** What the store answers to a report. */
    used: 0,
    reports: [] as { readonly customer: string; readonly admitted: readonly ChargedUnits[] }[],
  };
  const local = new LocalWindows({
    windows: {
      charge: async (customer, admitted) => {
        world.reports.push({ customer, admitted });
        await world.answered;
        if (world.outcome === 'refused') throw new NotRunError('OOM');
        if (world.outcome === 'unknown') throw new StoreUnavailableError('the connection was cut');
        return { used: world.used, usedOfKeys: new Map() };
      },
    },
    storeIsUp: () => world.storeIsUp,
    instances: () => world.instances,
    clock: machine,
    scheduler: machine,
  });
  function admit(): Admission {
    return local.admit(world.state, 1);
  }
  /** How many are admitted until one is refused. */
  function useUp(): number {
    let admitted = 0;
    while (admitted < 1000 && admit().outcome === 'admitted') admitted++;
    return admitted;
  }
  function heard(used: number): void {
    const receivedAt = machine.monotonicMs();
    const hour = { policy: 'hourly', free: 0, used, waitMs: 0, epoch: 'e', holdEndMs: 0 } as const;
    world.state.lastReply = { counts: [hour], receivedAt };
  }
  async function storeIsBack(): Promise<void> {
    world.storeIsUp = true;
    await time.run(REPORTED_MS);
  }
  function reportedUnits(): number {
    return world.reports.flatMap(({ admitted }) => admitted).reduce((sum, { units }) => sum + units, 0);
  }
  return { ...world, world, machine, admit, useUp, heard, storeIsBack, reportedUnits };
}

describe('the share of one gateway', () => {
  test.each([
    { limit: 12, instances: 1, share: 12 },
    { limit: 12, instances: 3, share: 4 },
    { limit: 14, instances: 4, share: 3 },
    { limit: 2, instances: 3, share: 1 },
  ])('of a limit of $limit is $share among $instances', ({ share, ...options }) => {
    const { useUp } = setUp(options);
    expect(useUp()).toBe(share);
  });

  test('is available again a window later, and not before', async () => {
    const { useUp, time } = setUp();
    expect(useUp()).toBe(4);
    await time.run(WINDOW_MS);
    expect(useUp()).toBe(0);
    await time.run(DROPPED_MS - WINDOW_MS);
    expect(useUp()).toBe(4);
  });

  test('follows a changed limit and a changed number of gateways', () => {
    const { useUp, world } = setUp();
    expect(useUp()).toBe(4);
    world.state.settings = { limits: hourly(18), usageResetAt: '' };
    expect(useUp()).toBe(2);
    world.instances = 1;
    expect(useUp()).toBe(12);
  });

  test('is held in no shorter time by a clock that runs fast', async () => {
    const { useUp, time } = setUp({ rate: 1.0005 });
    // The unit may begin until just before the end of its bucket.
    await time.run(7900);
    expect(useUp()).toBe(4);
    await time.run(1980 + WINDOW_MS - 1);
    expect(useUp()).toBe(0);
  });

  test('takes a unit back whose request did not begin', async () => {
    const { admit, useUp, storeIsBack, reportedUnits } = setUp();
    const admission = admit();
    expect(useUp()).toBe(3);
    if (admission.outcome === 'admitted') admission.settle(false);
    expect(useUp()).toBe(1);
    await storeIsBack();
    expect(reportedUnits()).toBe(4);
  });

  test('says a wait of 30 s at most: it is a guess, and the store may have free units before', async () => {
    const { admit, useUp, time } = setUp();
    expect(admit().resetSeconds(0)).toBe(30);
    useUp();
    const refusal = admit();
    expect(refusal).toMatchObject({ outcome: 'refused', mode: 'local' });
    expect(refusal.resetSeconds(0)).toBe(30);
    await time.run(WINDOW_MS - 10_000);
    expect(refusal.resetSeconds(0)).toBeLessThan(30);
  });

  test('is waited for as long as the last refusal says, by a clock that is fast or slow', async () => {
    for (const rate of [0.9995, 1, 1.0005]) {
      const { admit, useUp, time } = setUp({ rate });
      useUp();
      await time.run(WINDOW_MS - 10_000);
      const refusal = admit();
      expect(refusal.outcome).toBe('refused');
      expect(refusal.resetSeconds(0)).toBeLessThan(30);
      await time.run(refusal.resetSeconds(0) * 1000);
      expect(admit().outcome).toBe('admitted');
    }
  });
});

describe('what the store said last', () => {
  test.each([
    { used: 0, left: 4 },
    { used: 1, left: 3 },
    { used: 7, left: 1 },
    { used: 12, left: 0 },
  ])('is charged in advance: $used used leave $left of 4', ({ used, left }) => {
    const { heard, useUp } = setUp();
    heard(used);
    expect(useUp()).toBe(left);
  });

  test('drops a window after the last of its requests may have begun', async () => {
    const { heard, useUp, time } = setUp();
    heard(12);
    await time.run(WINDOW_MS / 2);
    expect(useUp()).toBe(0);
    await time.run(WINDOW_MS / 2 + 10_000);
    expect(useUp()).toBe(0);
    await time.run(DROPPED_MS - WINDOW_MS - 10_000);
    expect(useUp()).toBe(4);
  });

  test('is charged once, and replaced by what is heard later', async () => {
    const { heard, admit, useUp, time } = setUp();
    heard(6);
    expect(admit().outcome).toBe('admitted');
    await time.run(20_000);
    heard(3);
    expect(useUp()).toBe(2);
  });
});

describe('an outage', () => {
  test('does not begin afresh when the store was back too shortly to hear of it', async () => {
    const { useUp, time, world } = setUp();
    expect(useUp()).toBe(4);
    world.storeIsUp = true;
    await time.run(100);
    world.storeIsUp = false;
    await time.run(10_000);
    expect(useUp()).toBe(0);
  });

  test('is followed by one report, of times no earlier than their own', async () => {
    const { admit, time, storeIsBack, world } = setUp();
    admit();
    admit();
    await time.run(60_000);
    admit();
    await time.run(30_000);
    await storeIsBack();
    await time.run(WINDOW_MS);
    expect(world.reports).toHaveLength(1);
    const [report] = world.reports;
    expect(report?.customer).toBe('acme');
    expect(report?.admitted.map(({ units }) => units)).toEqual([2, 1]);
    for (const [index, agoMs] of [91_000, 31_000].entries()) {
      // Its bucket ends at most ten seconds after the end of its hold.
      expect(report?.admitted[index]?.ageMs).toBeLessThanOrEqual(agoMs);
      expect(report?.admitted[index]?.ageMs).toBeGreaterThan(agoMs - 13_000);
    }
  });

  test('of any length is kept, and reported, in no more entries than a window has buckets', async () => {
    const { time, world, admit, storeIsBack, reportedUnits } = setUp({ limit: 10_000 });
    const buckets = WINDOW_MS / 10_000;
    const admissions = 3 * buckets;
    for (let each = 0; each < admissions; each++) {
      expect(admit().outcome).toBe('admitted');
      await time.run(10_000);
    }
    await storeIsBack();
    expect(world.reports).toHaveLength(1);
    expect(reportedUnits()).toBe(admissions);
    // One more for the bucket that is not over, and one for those that have expired.
    expect(world.reports[0]?.admitted.length).toBeLessThanOrEqual(buckets + 3);
  });

  test('of an hour is reported no older than it is, by a clock that runs fast', async () => {
    const { admit, time, storeIsBack, world } = setUp({ rate: 1.0005 });
    await time.run(7900);
    admit();
    await time.run(1980 + WINDOW_MS - 10_000);
    await storeIsBack();
    expect(world.reports[0]?.admitted[0]?.ageMs).toBeLessThanOrEqual(WINDOW_MS - 10_000 + REPORTED_MS);
  });

  test('leaves, once reported, what the store counts as used to be charged in the next one', async () => {
    const { useUp, storeIsBack, time, world } = setUp();
    expect(useUp()).toBe(4);
    world.used = 6;
    await storeIsBack();
    world.storeIsUp = false;
    expect(useUp()).toBe(2);
    await time.run(100);
    // Also for a gateway that has forgotten the customer meanwhile.
    world.state = { ...world.state, lastReply: undefined };
    expect(useUp()).toBe(0);
  });

  test('whose report has an unknown outcome keeps its units, and is reported with the same ids until it is answered', async () => {
    const { useUp, admit, storeIsBack, time, world } = setUp({ limit: 15 });
    for (let each = 0; each < 4; each++) expect(admit().outcome).toBe('admitted');
    world.outcome = 'unknown';
    await storeIsBack();
    expect(useUp()).toBe(1);
    await time.run(12_000);
    world.outcome = 'counted';
    await time.run(6000);
    const reports = world.reports.map(({ admitted }) => admitted.map(({ grant, units }) => ({ grant, units })));
    expect(reports.length).toBeGreaterThan(3);
    const later = reports.pop();
    expect(new Set(reports.map((report) => JSON.stringify(report))).size).toBe(1);
    expect(reports[0]).toMatchObject([{ units: 4 }]);
    expect(later).toMatchObject([{ units: 1 }]);
    expect(later?.[0]?.grant).not.toBe(reports[0]?.[0]?.grant);
    world.storeIsUp = false;
    expect(useUp()).toBe(5);
  });

  test('whose report is not answered for an hour is not reported again: the store may have forgotten its ids', async () => {
    const { useUp, storeIsBack, time, world } = setUp();
    expect(useUp()).toBe(4);
    world.outcome = 'unknown';
    await storeIsBack();
    world.storeIsUp = false;
    await time.run(WINDOW_MS);
    world.storeIsUp = true;
    await time.run(10_000);
    world.reports.length = 0;
    world.outcome = 'counted';
    await time.run(60_000);
    expect(world.reports).toEqual([]);
  });

  test('whose report is not answered before an outage of an hour is not reported after it', async () => {
    const { useUp, storeIsBack, time, world } = setUp();
    expect(useUp()).toBe(4);
    world.outcome = 'unknown';
    await storeIsBack();
    world.storeIsUp = false;
    await time.run(WINDOW_MS);
    world.reports.length = 0;
    world.outcome = 'counted';
    world.storeIsUp = true;
    await time.run(60_000);
    expect(world.reports).toEqual([]);
  });

  test('whose report the store refuses for more than an hour is reported after it: the store has counted nothing', async () => {
    const { useUp, storeIsBack, time, world } = setUp();
    expect(useUp()).toBe(4);
    world.outcome = 'refused';
    await storeIsBack();
    await time.run(2 * WINDOW_MS);
    world.outcome = 'counted';
    world.reports.length = 0;
    await time.run(10_000);
    expect(world.reports.map(({ admitted }) => admitted.map(({ units }) => units))).toEqual([[4]]);
  });

  test('whose report the store refuses is reported every few seconds until the store accepts it', async () => {
    const { admit, useUp, storeIsBack, time, world } = setUp();
    expect(admit().outcome).toBe('admitted');
    world.outcome = 'refused';
    await storeIsBack();
    // Served while the store refuses.
    expect(useUp()).toBe(3);
    await time.run(60_000);
    expect(world.reports.length).toBeGreaterThan(2);
    expect(world.reports.length).toBeLessThan(20);
    world.outcome = 'counted';
    world.reports.length = 0;
    await time.run(10_000);
    // What was admitted after the first attempt has a report of its own.
    expect(world.reports.map(({ admitted }) => admitted.reduce((sum, { units }) => sum + units, 0))).toEqual([1, 3]);
  });

  test('soon after a reported one is reported as soon', async () => {
    const { admit, storeIsBack, time, world } = setUp();
    admit();
    await storeIsBack();
    world.storeIsUp = false;
    await time.run(5000);
    admit();
    await storeIsBack();
    expect(world.reports).toHaveLength(2);
  });

  test('in which every unit came back is not reported', async () => {
    const { admit, storeIsBack, world } = setUp();
    const admission = admit();
    if (admission.outcome === 'admitted') admission.settle(false);
    await storeIsBack();
    expect(world.reports).toEqual([]);
  });

  test('is over for a unit that comes back after the report: it is refunded by the id of the report', async () => {
    const { admit, storeIsBack, world } = setUp();
    const admission = admit();
    await storeIsBack();
    if (admission.outcome === 'admitted') admission.settle(false);
    expect(world.refunds).toEqual([{ grant: world.reports[0]?.admitted[0]?.grant, units: 1 }]);
  });

  test('refunds a unit that comes back during the report when that is answered, and not before', async () => {
    const { admit, storeIsBack, time, world } = setUp();
    const admission = admit();
    world.outcome = 'unknown';
    await storeIsBack();
    if (admission.outcome === 'admitted') admission.settle(false);
    expect(world.refunds).toEqual([]);
    world.outcome = 'counted';
    await time.run(6000);
    expect(world.refunds).toEqual([{ grant: world.reports[0]?.admitted[0]?.grant, units: 1 }]);
  });
});

/** Units from before a reset were charged to the window after it, and those of a deleted customer to its successor. */
describe('units that were admitted before', () => {
  test('a reset count in the history alone', async () => {
    const { admit, useUp, storeIsBack, world, time } = setUp();
    const before = admit();
    expect(useUp()).toBe(3);
    world.state.settings = { ...world.state.settings, usageResetAt: 'later' };
    expect(useUp()).toBe(4);
    if (before.outcome === 'admitted') before.settle(false);
    expect(useUp()).toBe(0);
    const hourAgoMs = WINDOW_MS + 20_000;
    await storeIsBack();
    const [report] = world.reports;
    const unitsOf = (isCounted: boolean) =>
      report?.admitted.filter(({ ageMs }) => ageMs < hourAgoMs === isCounted).map(({ units }) => units);
    expect(unitsOf(true)).toEqual([4]);
    // One of them came back.
    expect(unitsOf(false)).toEqual([3]);
    await time.run(REPORTED_MS);
    expect(world.reports).toHaveLength(1);
  });

  test('a reset, in several buckets, do not count where their requests are not sent after it', async () => {
    const { admit, storeIsBack, world, time, reportedUnits } = setUp();
    admit();
    await time.run(10_000);
    const waiting = admit();
    world.state.settings = { ...world.state.settings, usageResetAt: 'later' };
    admit();
    if (waiting.outcome === 'admitted') waiting.settle(false);
    await storeIsBack();
    expect(reportedUnits()).toBe(2);
  });

  test('many resets come back once, however many there were while their request waited', async () => {
    const { admit, storeIsBack, world, reportedUnits } = setUp({ limit: 100_000 });
    const resets = 20_000;
    const waiting = admit();
    for (let reset = 1; reset <= resets; reset++) {
      world.state.settings = { ...world.state.settings, usageResetAt: String(reset) };
      admit();
    }
    if (waiting.outcome === 'admitted') waiting.settle(false);
    await storeIsBack();
    expect(reportedUnits()).toBe(resets);
  });

  test('a reset that comes during their report are refunded once', async () => {
    const { admit, storeIsBack, world, time } = setUp();
    const before = admit();
    const answered = Promise.withResolvers<void>();
    world.answered = answered.promise;
    await storeIsBack();
    if (before.outcome === 'admitted') before.settle(false);
    world.state.settings = { ...world.state.settings, usageResetAt: 'later' };
    world.storeIsUp = false;
    expect(admit().outcome).toBe('admitted');
    world.storeIsUp = true;
    answered.resolve();
    await time.run(60_000);
    const [first, second] = world.reports;
    expect(world.reports).toHaveLength(2);
    expect(second?.admitted.map(({ grant }) => grant)).not.toContain(first?.admitted[0]?.grant);
    expect(world.refunds).toEqual([{ grant: first?.admitted[0]?.grant, units: 1 }]);
  });

  test('a deletion are not those of the customer that is created again', async () => {
    const { useUp, admit, storeIsBack, world, reportedUnits } = setUp();
    expect(useUp()).toBe(4);
    world.state.settings = { ...world.state.settings, usageResetAt: 'later', createdAt: 'later' };
    expect(admit().outcome).toBe('admitted');
    await storeIsBack();
    expect(reportedUnits()).toBe(1);
  });
});
