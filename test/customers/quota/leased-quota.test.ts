import { describe, expect, test } from 'vitest';
import type { Admitted, Usage } from '../../../src/customers/quota/hourly-quota.ts';
import { LeasedQuota } from '../../../src/customers/quota/leased-quota.ts';
import { type Grant, hourly, type ReserveRequest } from '../../../src/store/windows.ts';
import type { Answer } from '../../../tools/simulator/leasing-gateway.ts';
import { Machine } from '../../../tools/simulator/machine.ts';
import { SimulatedStore, unharmed } from '../../../tools/simulator/simulated-store.ts';
import { VirtualTime } from '../../../tools/simulator/virtual-time.ts';
import {
  CUSTOMER,
  type SimulatedGateway,
  VirtualWorld,
  type WorldOptions,
} from '../../../tools/simulator/virtual-world.ts';

const TIMEOUT_MS = 100;
const PLENTY = 1_000_000_000;

/** Exact clocks, a millisecond each way to the store, and requests that begin at once. */
function worldWith(options: Partial<WorldOptions> = {}): VirtualWorld {
  return new VirtualWorld({
    seed: 1,
    gateways: 1,
    limit: PLENTY,
    onError: 'deny',
    timeoutMs: TIMEOUT_MS,
    fate: () => unharmed(1, 1),
    dispatch: () => ({ kind: 'begins', afterMs: 0 }),
    clocks: 1,
    ...options,
  });
}

interface Decision {
  readonly afterMs: number;
  readonly answer: Answer;
}

/** Requests of one instant; how each was decided is added as it happens. */
function ask(world: VirtualWorld, count = 1, gateway = world.gateway(0)): Decision[] {
  const askedMs = world.time.nowMs;
  const decisions: Decision[] = [];
  for (let asked = 0; asked < count; asked++) {
    gateway.request((answer) => decisions.push({ afterMs: world.time.nowMs - askedMs, answer }));
  }
  return decisions;
}

function outcomes(decisions: readonly Decision[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { answer } of decisions) counts[answer.outcome] = (counts[answer.outcome] ?? 0) + 1;
  return counts;
}

/** Requests at random instants, in turn over all gateways. */
async function flood(world: VirtualWorld, perSecond: number, durationMs: number): Promise<number> {
  const endMs = world.time.nowMs + durationMs;
  let count = 0;
  for (;;) {
    const gapMs = (-Math.log(1 - world.dice.next()) * 1000) / perSecond;
    if (world.time.nowMs + gapMs >= endMs) break;
    await world.time.run(gapMs);
    world.gateway(count++).request();
  }
  await world.time.runUntil(endMs);
  return count;
}

function callsOf(gateways: readonly SimulatedGateway[]): number {
  return gateways.reduce((sum, { link }) => sum + link.counts.reserves + link.counts.refunds, 0);
}

/** A lease with units in it: the rate of a burst makes the next reservation ask ahead. */
async function openLease(world: VirtualWorld): Promise<void> {
  ask(world, 200);
  await world.time.run(20);
  ask(world);
  await world.time.run(20);
}

describe('reservations', () => {
  test('are two for a burst of a thousand', async () => {
    const world = worldWith();
    const decisions = ask(world, 1000);
    await world.time.run(5000);
    expect(outcomes(decisions)).toEqual({ admitted: 1000 });
    expect(callsOf(world.gateways)).toBe(2);
    expect(world.store.used(CUSTOMER)).toBe(1000);
  });

  test('are under way one at a time for a customer, and at once for two customers', async () => {
    const world = worldWith({ fate: () => unharmed(20, 20) });
    const gateway = world.gateway(0);
    for (let ms = 0; ms < 39; ms++) {
      ask(world);
      await world.time.run(1);
    }
    expect(gateway.link.counts.reserves).toBe(1);
    gateway.request(() => {}, 'another');
    expect(gateway.link.counts.reserves).toBe(2);
    await world.time.run(100);
    expect(gateway.link.counts.reserves).toBe(3);
    expect(world.begins).toHaveLength(40);
  });

  test('answer all who wait: those beyond what was left are refused without another call', async () => {
    const world = worldWith({ limit: 10 });
    const decisions = ask(world, 1000);
    await world.time.run(100);
    expect(outcomes(decisions)).toEqual({ admitted: 10, refused: 990 });
    expect(callsOf(world.gateways)).toBe(2);
  });

  test.each([
    { gateways: 1, atMost: 0.002 },
    { gateways: 3, atMost: 0.003 },
    { gateways: 20, atMost: 0.02 },
  ])('are hardly any per request at a steady 2,000 a second over $gateways gateways', async ({ gateways, atMost }) => {
    const world = worldWith({ gateways });
    await flood(world, 2000, 5000);
    const before = callsOf(world.gateways);
    const requests = await flood(world, 2000, 20_000);
    const perRequest = (callsOf(world.gateways) - before) / requests;
    expect(perRequest).toBeLessThanOrEqual(atMost);
    await world.time.run(5000);
    expect(world.store.used(CUSTOMER)).toBe(world.begins.length);
  });

  test('are at most one a second for a flood of refused requests, over all gateways', async () => {
    const world = worldWith({ gateways: 3, limit: 50 });
    await flood(world, 100, 10_000);
    const before = callsOf(world.gateways);
    await flood(world, 100, 100_000);
    expect(callsOf(world.gateways) - before).toBeLessThanOrEqual(100);
    expect(world.begins).toHaveLength(50);
  });
});

test('a lowered limit holds from the next reservation on', async () => {
  const world = worldWith({ limit: 10 });
  ask(world, 5);
  await world.time.run(3000);
  world.gateway(0).settings = { limits: hourly(6), usageResetAt: '' };
  expect(outcomes(await decided(world, ask(world, 5)))).toEqual({ admitted: 1, refused: 4 });
});

test('a lowered limit ends open leases: not one more is admitted than it allows', async () => {
  const world = worldWith({ limit: 100_000 });
  await openLease(world);
  const gateway = world.gateway(0);
  expect(gateway.quota.leaseState(CUSTOMER).leases).toHaveLength(1);
  gateway.settings = { limits: hourly(205), usageResetAt: '' };
  expect(outcomes(await decided(world, ask(world, 10)))).toEqual({ admitted: 4, refused: 6 });
  expect(gateway.quota.leaseState(CUSTOMER).leases).toEqual([]);
  await world.time.run(3000);
  expect(world.store.used(CUSTOMER)).toBe(world.begins.length);
});

test('what is granted by a higher limit after that was lowered goes back whole', async () => {
  const world = worldWith({ limit: 100, fate: () => unharmed(10, 10) });
  const early = ask(world, 50);
  // The first call was for one of them, and the second, for all others, is under way.
  await world.time.run(30);
  world.gateway(0).settings = { limits: hourly(30), usageResetAt: '' };
  const late = ask(world, 10);
  await world.time.run(3000);
  expect(outcomes([...early, ...late])).toEqual({ admitted: 30, refused: 30 });
  expect(world.store.used(CUSTOMER)).toBe(30);
});

test('a raised limit ends a refusal at once, and no lease', async () => {
  const world = worldWith({ limit: 5 });
  expect(outcomes(await decided(world, ask(world, 6)))).toEqual({ admitted: 5, refused: 1 });
  expect(world.gateway(0).quota.leaseState(CUSTOMER).refusedForMs).toBeGreaterThan(0);
  world.gateway(0).settings = { limits: hourly(8), usageResetAt: '' };
  expect(outcomes(await decided(world, ask(world, 6)))).toEqual({ admitted: 3, refused: 3 });
});

describe('a lease', () => {
  test('answers without a promise', async () => {
    const world = worldWith();
    await openLease(world);
    const { quota, settings } = world.gateway(0);
    expect(quota.admit(CUSTOMER, settings)).toMatchObject({ outcome: 'admitted', mode: 'lease' });
  });

  test('names a lower bound of what is left', async () => {
    const world = worldWith({ limit: 1000 });
    await openLease(world);
    const [decision] = ask(world);
    expect(decision?.answer.outcome === 'admitted' && decision.answer.remaining(0)).toBe(1000 - 202);
  });

  test('takes a unit back for its next request while it runs, without a call', async () => {
    const world = worldWith({ limit: 1 });
    const { quota, settings, link } = world.gateway(0);
    const first = quota.admit(CUSTOMER, settings);
    await world.time.run(10);
    ((await first) as Admitted).settle(false);
    expect(quota.admit(CUSTOMER, settings)).toMatchObject({ outcome: 'admitted', mode: 'lease' });
    expect(link.counts).toMatchObject({ reserves: 1, refunds: 0 });
  });

  test('gives back to the store what comes back after its end, once', async () => {
    const world = worldWith({ limit: 1 });
    const { quota, settings, link } = world.gateway(0);
    const first = quota.admit(CUSTOMER, settings);
    await world.time.run(1500);
    ((await first) as Admitted).settle(false);
    await world.time.run(5000);
    expect(link.counts).toMatchObject({ reserves: 1, refunds: 1, refunded: 1 });
    expect(world.store.used(CUSTOMER)).toBe(0);
  });

  test('never gets the unit of an older one, which goes back to the bucket it was counted in', async () => {
    const world = worldWith();
    const { quota, settings, link } = world.gateway(0);
    const first = quota.admit(CUSTOMER, settings);
    await world.time.run(11_000);
    await openLease(world);
    const { used } = await usageOf(world);
    ((await first) as Admitted).settle(false);
    await world.time.run(300);
    // By the id of the first reservation, under which the store notes the bucket.
    expect(link.refunds.filter(({ units }) => units > 0)).toMatchObject([
      { grant: expect.stringMatching(/\.0$/), units: 1 },
    ]);
    expect((await usageOf(world)).used).toBe(used - 1);
  });

  test('is not begun on once its machine has slept, though only the wall clock knows', async () => {
    const world = worldWith({ dispatch: () => ({ kind: 'begins', afterMs: 100 }) });
    await openLease(world);
    await world.time.run(200);
    const begun = world.begins.length;
    ask(world);
    await world.time.run(50);
    world.gateway(0).machine.stop(5000, 'monotonic');
    await world.time.run(5000);
    expect(world.gateway(0).quota.admit(CUSTOMER, world.gateway(0).settings)).toBeInstanceOf(Promise);
    await world.time.run(5000);
    expect(world.begins).toHaveLength(begun);
  });

  test('gives back at its end what nobody used, with the next reservation if there is one soon', async () => {
    const world = worldWith();
    await openLease(world);
    await world.time.run(970);
    const { link } = world.gateway(0);
    const { refunds } = link.counts;
    ask(world);
    await world.time.run(50);
    expect(link.counts.refunds).toBe(refunds);
    expect(link.counts.refunded).toBeGreaterThan(0);
    await world.time.run(5000);
    expect(world.store.used(CUSTOMER)).toBe(world.begins.length);
  });

  test('ends at once with a usage reset', async () => {
    const world = worldWith();
    await openLease(world);
    const { quota } = world.gateway(0);
    world.store.resetUsage(CUSTOMER);
    const admission = quota.admit(CUSTOMER, { limits: hourly(PLENTY), usageResetAt: 'now' });
    expect(admission).toBeInstanceOf(Promise);
    await world.time.run(5000);
    expect(await admission).toMatchObject({ outcome: 'admitted', mode: 'store' });
    expect(world.store.used(CUSTOMER)).toBe(1);
  });
});

test('a grant of before a usage reset is not used after it', async () => {
  const world = worldWith({ fate: () => unharmed(20, 20) });
  ask(world);
  await world.time.run(25);
  world.store.resetUsage(CUSTOMER);
  world.gateway(0).settings = { limits: hourly(PLENTY), usageResetAt: 'now' };
  ask(world);
  await world.time.run(5000);
  expect(world.begins).toHaveLength(2);
  expect(world.store.used(CUSTOMER)).toBe(2);
});

test('units that were admitted while the store was silent are charged when it replies again', async () => {
  let isSilent = false;
  const silence = { outMs: 0, backMs: 0, lost: 'request', noticedAfterMs: 1000, reconnectMs: 100 } as const;
  const world = worldWith({ limit: 100, onError: 'local', fate: () => (isSilent ? silence : unharmed(1, 1)) });
  isSilent = true;
  ask(world, 5);
  // A charge would be sent now, and lost with the connection.
  await world.time.run(900);
  isSilent = false;
  await world.time.run(2000);
  expect(world.begins).toHaveLength(5);
  expect(world.store.used(CUSTOMER)).toBe(5);
});

test('what the store counted before a usage reset takes nothing from a local share after it', async () => {
  const world = worldWith({ limit: 10, onError: 'local' });
  ask(world, 10);
  await world.time.run(3000);
  const gateway = world.gateway(0);
  gateway.link.cut(60_000);
  gateway.settings = { limits: hourly(10), usageResetAt: 'now' };
  expect(outcomes(ask(world, 11))).toEqual({ admitted: 10, refused: 1 });
});

describe('a refusal', () => {
  async function usedUp(options: Partial<WorldOptions> = {}): Promise<VirtualWorld> {
    const world = worldWith({ limit: 10, ...options });
    ask(world, 11);
    await world.time.run(3000);
    ask(world);
    await world.time.run(10);
    return world;
  }

  test('is remembered: nobody asks again for half a minute', async () => {
    const world = await usedUp();
    const before = callsOf(world.gateways);
    const requests = await flood(world, 50, 29_000);
    expect(callsOf(world.gateways)).toBe(before);
    expect(world.gateway(0).refused).toBe(2 + requests);
  });

  test('tells less and less time to wait', async () => {
    const world = await usedUp();
    const seconds = async () => {
      const [decision] = ask(world);
      return decision?.answer.outcome === 'refused' ? decision.answer.resetSeconds(0) : undefined;
    };
    const first = (await seconds()) ?? 0;
    await world.time.run(20_000);
    expect(await seconds()).toBe(first - 20);
  });

  test('is true of a clock that runs fast, also when it is told from memory', async () => {
    for (let fractionMs = 0; fractionMs < 40; fractionMs += 2) {
      const world = worldWith({ limit: 1, clocks: 1.0005, fate: () => unharmed(0, 0) });
      ask(world);
      // The unit drops at 3,610 s.
      await world.time.runUntil(3_575_000 - fractionMs);
      expect(outcomes(await decided(world, ask(world)))).toEqual({ refused: 1 });
      await world.time.runUntil(3_575_000 - fractionMs + 29_000);
      const [told] = ask(world);
      if (told?.answer.outcome !== 'refused') throw new Error('the refusal is remembered');
      await world.time.run(told.answer.resetSeconds(0) * 1000);
      expect(outcomes(await decided(world, ask(world)))).toEqual({ admitted: 1 });
    }
  });

  test.each([
    { what: 'a raised limit', settings: { limits: hourly(11), usageResetAt: '' }, isReset: false },
    { what: 'a usage reset', settings: { limits: hourly(10), usageResetAt: 'now' }, isReset: true },
  ])('ends with $what', async ({ settings, isReset }) => {
    const world = await usedUp();
    if (isReset) world.store.resetUsage(CUSTOMER);
    world.gateway(0).settings = settings;
    const decisions = ask(world);
    await world.time.run(10);
    expect(outcomes(decisions)).toEqual({ admitted: 1 });
  });

  test('ends when units may have come back from the lease of another gateway', async () => {
    const world = worldWith({ gateways: 2, limit: 10 });
    // Ten units whose requests never begin, on a gateway that gives them back as late as it may.
    const { quota, settings } = world.gateway(1);
    const admissions = Array.from({ length: 10 }, () => quota.admit(CUSTOMER, settings));
    await world.time.run(1950);
    expect(outcomes(await decided(world, ask(world)))).toEqual({ refused: 1 });
    for (const admission of admissions) ((await admission) as Admitted).settle(false);
    await world.time.run(700);
    expect(outcomes(await decided(world, ask(world)))).toEqual({ admitted: 1 });
  });

  test('made between the end of a hold and the refund is not remembered for longer than that takes', async () => {
    const world = worldWith({ gateways: 2, limit: 10 });
    const { quota, settings } = world.gateway(1);
    const admissions = Array.from({ length: 10 }, () => quota.admit(CUSTOMER, settings));
    await world.time.run(1979);
    for (const admission of admissions) ((await admission) as Admitted).settle(false);
    await world.time.run(50);
    expect(outcomes(await decided(world, ask(world)))).toEqual({ refused: 1 });
    await world.time.run(700);
    expect(outcomes(await decided(world, ask(world)))).toEqual({ admitted: 1 });
  });
});

describe('a slow store', () => {
  test('keeps nobody waiting for longer than the timeout, nor who joined late', async () => {
    const world = worldWith({ fate: () => unharmed(35, 35) });
    const decisions: Decision[][] = [];
    for (const ms of [0, 5, 60, 80, 100, 140, 150]) {
      await world.time.runUntil(ms);
      decisions.push(ask(world));
    }
    await world.time.run(1000);
    expect(decisions.flat()).toHaveLength(7);
    for (const { afterMs } of decisions.flat()) expect(afterMs).toBeLessThanOrEqual(TIMEOUT_MS + 0.001);
    // Who came at 5 ms needs the second call, which ends at 140 ms.
    expect(decisions[1]).toMatchObject([{ afterMs: TIMEOUT_MS, answer: { outcome: 'unavailable' } }]);
  });

  test('that owes an answer is not waited for by those who come after', async () => {
    const world = worldWith({ fate: () => unharmed(300, 300) });
    const first = ask(world);
    await world.time.run(TIMEOUT_MS - 1);
    expect(first).toEqual([]);
    await world.time.run(2);
    expect(outcomes(first)).toEqual({ unavailable: 1 });
    const others: Decision[] = [];
    world.gateway(0).request((answer) => others.push({ afterMs: 0, answer }), 'another');
    expect(outcomes([...ask(world, 3), ...others])).toEqual({ unavailable: 4 });
    expect(world.gateway(0).link.counts.reserves).toBe(1);
  });

  test('is asked again once it has answered', async () => {
    let latencyMs = 300;
    const world = worldWith({ fate: () => unharmed(latencyMs, latencyMs) });
    ask(world);
    await world.time.run(600);
    latencyMs = 1;
    const decisions = ask(world);
    await world.time.run(10);
    expect(outcomes(decisions)).toEqual({ admitted: 1 });
  });

  test('gets back the whole of a grant that comes too late', async () => {
    const world = worldWith({ limit: 10, fate: () => unharmed(300, 300) });
    ask(world, 5);
    await world.time.run(400);
    expect(world.store.used(CUSTOMER)).toBe(1);
    await world.time.run(3000);
    expect(world.store.used(CUSTOMER)).toBe(0);
    expect(world.begins).toEqual([]);
  });
});

test('what is held in memory is bounded: idle customers are forgotten, those with a lease are not', async () => {
  const world = worldWith({ customers: 4, limit: 1000 });
  const gateway = world.gateway(0);
  const { quota, settings, link } = gateway;
  ask(world, 1001);
  await world.time.run(3000);
  expect(quota.admit(CUSTOMER, settings)).toBeInstanceOf(Promise);
  await world.time.run(10);
  expect(quota.admit(CUSTOMER, settings)).toMatchObject({ outcome: 'refused', mode: 'lease' });

  for (let index = 0; index < 200; index++) gateway.request(() => {}, 'busy');
  await world.time.run(20);
  gateway.request(() => {}, 'busy');
  await world.time.run(20);
  for (let index = 0; index < 8; index++) {
    gateway.request(() => {}, `other-${index}`);
    await world.time.run(5);
  }
  const { reserves } = link.counts;
  expect(quota.admit('busy', settings)).toMatchObject({ outcome: 'admitted', mode: 'lease' });
  expect(link.counts.reserves).toBe(reserves);
  // The refusal was forgotten, so the store is asked.
  expect(quota.admit(CUSTOMER, settings)).toBeInstanceOf(Promise);
  await world.time.run(10);
});

describe('a customer with few requests', () => {
  /** The calls a request of a customer whose requests come at random, once its rate is known. */
  async function callsPerRequest(perSecond: number, limit = 20_000): Promise<number> {
    const world = worldWith({ limit });
    await flood(world, perSecond, 60_000);
    const before = callsOf(world.gateways);
    const requests = await flood(world, perSecond, 600_000);
    return (callsOf(world.gateways) - before) / requests;
  }

  test.each([
    { perSecond: 0.1, atMost: 1.05 },
    { perSecond: 0.3, atMost: 0.6 },
    { perSecond: 0.76, atMost: 0.21 },
    { perSecond: 1, atMost: 0.16 },
    { perSecond: 3, atMost: 0.05 },
    { perSecond: 9, atMost: 0.03 },
  ])('shares reservations: $perSecond requests a second cost at most $atMost calls each', async (row) => {
    expect(await callsPerRequest(row.perSecond)).toBeLessThanOrEqual(row.atMost);
  });

  /** Rare requests until a long lease is open. */
  async function openLongLease(world: VirtualWorld, gateway = world.gateway(0)): Promise<void> {
    for (let second = 0; second < 30 || gateway.quota.leaseState(CUSTOMER).leases.length === 0; second++) {
      gateway.request();
      await world.time.run(1000);
    }
  }

  test('has a lease of at most a 64th of the free units, for at most nine seconds', async () => {
    const world = worldWith({ limit: 1000 });
    await openLongLease(world);
    const [lease] = world.gateway(0).quota.leaseState(CUSTOMER).leases;
    expect(lease?.endsInMs).toBeLessThanOrEqual(9000);
    expect(lease?.endsInMs).toBeGreaterThan(1000);
    expect(lease?.units).toBeLessThanOrEqual((1000 - world.store.used(CUSTOMER)) / 64);
  });

  test('has a lease of at most a 64th of the free units also where another gateway used most of them since', async () => {
    const world = worldWith({ limit: 1000, gateways: 2 });
    const [gateway, other] = [world.gateway(0), world.gateway(1)];
    const { reservations } = gateway.link;
    const request = async () => {
      gateway.request();
      await world.time.run(330);
    };
    for (let requests = 0; requests < 90; requests++) await request();
    ask(world, 600, other);
    const before = reservations.length;
    while (reservations.length === before) await request();
    expect(reservations.at(-1)?.holdMs).toBe(10_000);
    const [lease] = gateway.quota.leaseState(CUSTOMER).leases;
    expect(lease?.units).toBeGreaterThan(0);
    // With the one unit of the request that waited.
    expect((lease?.units ?? 0) + 1).toBeLessThanOrEqual(1 + (1000 - world.begins.length) / 64);
  });

  test('has short leases near its limit', async () => {
    const world = worldWith({ limit: 100 });
    for (let second = 0; second < 30; second++) {
      ask(world);
      await world.time.run(1000);
      expect(world.gateway(0).quota.leaseState(CUSTOMER).leases).toEqual([]);
    }
    expect(world.store.used(CUSTOMER)).toBe(30);
  });

  test.each([
    { what: 'a lower limit', settings: { limits: hourly(900), usageResetAt: '' } },
    { what: 'a usage reset', settings: { limits: hourly(1000), usageResetAt: 'now' } },
  ])('has its long lease ended by $what at the next request', async ({ settings }) => {
    const world = worldWith({ limit: 1000 });
    await openLongLease(world);
    const gateway = world.gateway(0);
    const { reserves } = gateway.link.counts;
    gateway.settings = settings;
    expect(gateway.quota.admit(CUSTOMER, settings)).toBeInstanceOf(Promise);
    expect(gateway.link.counts.reserves).toBe(reserves + 1);
  });

  test('becomes busy in the middle of a long lease, and is not refused', async () => {
    const world = worldWith({ limit: 100_000 });
    await openLongLease(world);
    const decisions = ask(world, 500);
    await world.time.run(100);
    expect(outcomes(decisions)).toEqual({ admitted: 500 });
    const before = callsOf(world.gateways);
    await flood(world, 500, 10_000);
    expect(callsOf(world.gateways) - before).toBeLessThan(40);
  });

  test('has the units refunded that it did not use, about when their hold ends', async () => {
    const world = worldWith({ limit: 1000 });
    await openLongLease(world);
    await world.time.run(10_300);
    expect(world.store.used(CUSTOMER)).toBe(world.begins.length);
  });

  test('reads its usage right, but for what long leases of other gateways hold', async () => {
    const world = worldWith({ limit: 1000, gateways: 3 });
    for (const gateway of world.gateways) await openLongLease(world, gateway);
    const held = world.gateways.map(({ quota }) =>
      quota.leaseState(CUSTOMER).leases.reduce((sum, { units }) => sum + units, 0),
    );
    const [, ...others] = held;
    const { used, remaining } = await usageOf(world);
    expect(used).toBe(world.begins.length + others.reduce((sum, units) => sum + units, 0));
    expect(remaining).toBe(1000 - used);
    for (const units of held) expect(units).toBeLessThanOrEqual(1000 / 64);
    // Without requests, nothing is held ten seconds later.
    await world.time.run(10_300);
    expect(await usageOf(world)).toMatchObject({ used: world.begins.length });
  });

  test.each([
    { perSecond: 0.4, gateways: 1 },
    { perSecond: 0.4, gateways: 3 },
    { perSecond: 3, gateways: 3 },
  ])('that sends more than its limit, $perSecond a second over $gateways gateways, gets 99.4 % of it', async (row) => {
    const world = worldWith({ limit: 1000, gateways: row.gateways });
    const hourMs = 3_600_000;
    await flood(world, row.perSecond, 5 * hourMs);
    const begun = world.begins.filter(({ atMs }) => atMs > hourMs);
    expect(begun.length).toBeGreaterThanOrEqual(0.994 * 4 * 1000);
  });

  test('loses at most a 64th of its free units to a crash', async () => {
    const world = worldWith({ limit: 1000 });
    await openLongLease(world);
    world.crash(0);
    await world.time.run(60_000);
    const stranded = world.store.used(CUSTOMER) - world.begins.length;
    expect(stranded).toBeGreaterThan(0);
    expect(stranded).toBeLessThanOrEqual(1000 / 64);
  });
});

describe('closing', () => {
  test('gives back what leases hold and what waits to be refunded', async () => {
    const world = worldWith();
    await openLease(world);
    const closed = world.gateway(0).quota.close();
    await world.time.run(10);
    await closed;
    expect(world.store.used(CUSTOMER)).toBe(world.begins.length);
  });

  test('waits for a reservation under way, and gives back what it brings', async () => {
    const world = worldWith({ fate: () => unharmed(20, 20), dispatch: () => ({ kind: 'fails', afterMs: 0 }) });
    ask(world, 5);
    await world.time.run(10);
    const closed = world.gateway(0).quota.close();
    await world.time.run(2000);
    await closed;
    expect(world.store.used(CUSTOMER)).toBe(0);
  });

  test('does not wait for a store that is silent', async () => {
    const world = worldWith({ fate: () => unharmed(1e6, 1e6) });
    ask(world);
    let isClosed = false;
    void world
      .gateway(0)
      .quota.close()
      .then(() => {
        isClosed = true;
      });
    await world.time.run(2 * TIMEOUT_MS + 1);
    expect(isClosed).toBe(true);
  });
});

describe('usage', () => {
  test('counts what requests have used, not what this gateway holds', async () => {
    const world = worldWith({ limit: 1000 });
    await openLease(world);
    expect(world.store.used(CUSTOMER)).toBeGreaterThan(201);
    expect(await usageOf(world)).toMatchObject({ limit: 1000, used: 201, remaining: 799, windowSeconds: 3600 });
  });

  test('does not count what waits to be refunded', async () => {
    const world = worldWith({ limit: 1000 });
    await openLease(world);
    await world.time.run(1000);
    expect(await usageOf(world)).toMatchObject({ used: 201, remaining: 799 });
    expect(world.store.used(CUSTOMER)).toBe(201);
  });

  test('of an unused hour has nothing to wait for', async () => {
    expect(await usageOf(worldWith())).toMatchObject({ used: 0, remaining: 1000, resetSeconds: 0 });
  });

  test('is unavailable while the store is away', async () => {
    const world = worldWith();
    world.gateway(0).link.cut(1000);
    await expect(world.gateway(0).quota.usage(CUSTOMER, hourly(1000))).rejects.toThrow('the store is away');
  });
});

test("a late read of one customer's usage sends no other customer to its local share", async () => {
  const time = new VirtualTime();
  const rest = { monotonicOriginMs: 5000, wallOriginMs: 1e12, timerLatenessMs: () => 0 };
  const machine = new Machine({ time, rate: 1, ...rest });
  const store = new SimulatedStore(time);
  // Of a cluster, for example: only one master is late.
  const reserve = (request: ReserveRequest): Promise<Grant> =>
    request.customer === 'slow' ? new Promise(() => {}) : Promise.resolve({ ...store.reserve(request), session: 1 });
  const refusing = {
    admit() {
      throw new Error('decided without the store');
    },
  };
  const quota = new LeasedQuota({
    windows: { reserve, refund: async () => 0, charge: async () => ({ used: 0, usedOfKeys: new Map() }) },
    storeIsUp: () => true,
    withoutStore: refusing,
    clock: machine,
    scheduler: machine,
    timeoutMs: TIMEOUT_MS,
    customers: 10,
  });
  const late = expect(quota.usage('slow', hourly(1000))).rejects.toThrow(
    `no reply from the store within ${TIMEOUT_MS} ms`,
  );
  await time.run(TIMEOUT_MS + 1);
  await late;
  // Asked again, it fails at once instead of waiting for another timeout.
  await expect(quota.usage('slow', hourly(1000))).rejects.toThrow('the store is away');
  expect(await quota.admit('acme', { limits: hourly(1000), usageResetAt: '' })).toMatchObject({ outcome: 'admitted' });
  expect(await quota.usage('acme', hourly(1000))).toMatchObject({ used: 1 });
});

/** A few milliseconds later. */
async function decided(world: VirtualWorld, decisions: Decision[]): Promise<Decision[]> {
  await world.time.run(10);
  return decisions;
}

async function usageOf(world: VirtualWorld): Promise<Usage> {
  const usage = world.gateway(0).quota.usage(CUSTOMER, hourly(1000));
  await world.time.run(10);
  return usage;
}

test('a request that waits while the limit is lowered names the limit that refuses it', async () => {
  const world = worldWith({ limit: 1000 });
  const { quota, settings } = world.gateway(0);
  const lowered = { ...settings, limits: hourly(1) };
  const waiting = [quota.admit(CUSTOMER, settings), quota.admit(CUSTOMER, settings), quota.admit(CUSTOMER, lowered)];
  await world.time.run(20);
  const refused = (await Promise.all(waiting)).filter(({ outcome }) => outcome === 'refused');
  expect(refused.length).toBeGreaterThanOrEqual(2);
  for (const admission of refused) expect(admission).toMatchObject({ violated: hourly(1) });
});

describe('a request of several units', () => {
  test('takes all of them from every limit, and gives all of them back', async () => {
    const world = worldWith({ limit: 10 });
    const { quota, settings } = world.gateway(0);
    const asked = [
      quota.admit(CUSTOMER, settings, 4),
      quota.admit(CUSTOMER, settings, 4),
      quota.admit(CUSTOMER, settings, 4),
    ];
    await world.time.run(20);
    const answers = await Promise.all(asked);
    expect(answers.map(({ outcome }) => outcome)).toEqual(['admitted', 'admitted', 'refused']);
    for (const answer of answers) if (answer.outcome === 'admitted') answer.settle(false);
    await world.time.run(2000);
    expect(await usageOf(world)).toMatchObject({ used: 0 });
  });

  test('waits for a lease that has them, and leaves the units of others alone', async () => {
    const world = worldWith({ limit: 100 });
    const { quota, settings } = world.gateway(0);
    const first = quota.admit(CUSTOMER, settings, 3);
    await world.time.run(20);
    expect(await first).toMatchObject({ outcome: 'admitted', mode: 'store' });
    const second = quota.admit(CUSTOMER, settings, 7);
    await world.time.run(20);
    expect(await second).toMatchObject({ outcome: 'admitted', mode: 'store' });
    expect(quota.admitted(CUSTOMER)).toBe(10);
    await world.time.run(3000);
    expect(await usageOf(world)).toMatchObject({ used: 10 });
  });
});
