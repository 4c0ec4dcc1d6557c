/** A day or a month beside the hour, in virtual time: leases, refusals and changes across the end of a period. */
import { describe, expect, test } from 'vitest';
import type { QuotaSettings } from '../../../src/customers/quota/hourly-quota.ts';
import { hourly, type PeriodLimit } from '../../../src/store/windows.ts';
import type { Answer } from '../../../tools/simulator/leasing-gateway.ts';
import { unharmed } from '../../../tools/simulator/simulated-store.ts';
import { CUSTOMER, VirtualWorld, type WorldOptions } from '../../../tools/simulator/virtual-world.ts';

const HOUR_MS = 3_600_000;
const SECOND_MS = 1000;
/** Days that begin at 01:00: the world begins at 00:00, so the first one ends after an hour. */
const DAY: PeriodLimit = { policy: 'daily', amount: 10, beyond: 'refuse', anchorMs: HOUR_MS, plan: 'starter' };

function settingsWith(period: Partial<PeriodLimit> = {}, others: Partial<QuotaSettings> = {}): QuotaSettings {
  return { limits: [...hourly(1000), { ...DAY, ...period }], usageResetAt: '', ...others };
}

function worldWith(options: Partial<WorldOptions> = {}, settings = settingsWith()) {
  const world = new VirtualWorld({
    seed: 1,
    gateways: 1,
    limit: 1000,
    onError: 'local',
    timeoutMs: 100,
    fate: () => unharmed(1, 1),
    dispatch: () => ({ kind: 'begins', afterMs: 0 }),
    clocks: 1,
    ...options,
  });
  for (const gateway of world.gateways) gateway.settings = settings;
  return world;
}

/** Sends requests at once, and resolves to what became of them. */
async function ask(world: VirtualWorld, count = 1, gateway = world.gateway(0)): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (let asked = 0; asked < count; asked++) gateway.request((answer) => answers.push(answer));
  await world.time.run(50);
  return answers;
}

const admittedOf = (answers: readonly Answer[]) => answers.filter(({ outcome }) => outcome === 'admitted').length;

/** What the store counts in the present period. */
const countedIn = (world: VirtualWorld, settings = settingsWith()) =>
  world.store.reserve({
    ...{ customer: CUSTOMER, grant: '', need: 0, ahead: 0, holdMs: 0, refunds: [] },
    limits: settings.limits,
  }).counts[1]?.used;

test('as many requests are admitted as the period has, and the refusal is remembered until it ends', async () => {
  const world = worldWith();
  expect(admittedOf(await ask(world, 25))).toBe(10);
  const { link } = world.gateway(0);
  await world.time.runUntil(HOUR_MS - 2 * SECOND_MS);
  expect(admittedOf(await ask(world, 100))).toBe(0);
  const calls = link.counts.reserves;
  expect(admittedOf(await ask(world, 100))).toBe(0);
  expect(link.counts.reserves).toBe(calls);
});

test('the first request of the next period passes within a second', async () => {
  const world = worldWith();
  await world.time.runUntil(HOUR_MS - 10 * SECOND_MS);
  await ask(world, 20);
  await world.time.runUntil(HOUR_MS - 100);
  expect(admittedOf(await ask(world))).toBe(0);
  await world.time.runUntil(HOUR_MS + SECOND_MS - 50);
  expect(admittedOf(await ask(world, 20))).toBe(10);
});

test('a refusal says when the period ends, with a second more to wait', async () => {
  const world = worldWith();
  const { quota } = world.gateway(0);
  await ask(world, 10);
  const admission = await new Promise<Awaited<ReturnType<typeof quota.admit>>>((resolve) => {
    void Promise.resolve(quota.admit(CUSTOMER, settingsWith())).then(resolve);
    void world.time.run(50);
  });
  if (admission.outcome !== 'refused') throw new Error('admitted');
  const [limit] = admission.violated;
  expect(limit).toMatchObject({ policy: 'daily', amount: 10, used: 10 });
  expect(new Date(limit.endsAtMs ?? 0).toISOString()).toBe('2030-01-01T01:00:00.000Z');
  const leftMs = HOUR_MS - world.time.nowMs;
  expect(admission.resetSeconds(0)).toBe(Math.ceil(leftMs / SECOND_MS) + 1);
});

test('of several gateways, all together admit no more than the period has, in each period', async () => {
  const world = worldWith({ gateways: 4, clocks: 4 });
  for (const period of [0, 1]) {
    let admitted = 0;
    await world.time.runUntil(period * HOUR_MS + 10 * SECOND_MS);
    for (let round = 0; round < 40; round++) admitted += admittedOf(await ask(world, 3, world.gateway(round % 4)));
    expect(admitted).toBe(10);
  }
});

test('beyond a period that allows it, requests are admitted and counted, up to the hour', async () => {
  const settings = settingsWith({ beyond: 'allow' });
  const world = worldWith({}, { ...settings, limits: [...hourly(30), { ...DAY, beyond: 'allow' }] });
  expect(admittedOf(await ask(world, 50))).toBe(30);
  expect(countedIn(world, settings)).toBe(30);
});

test('unused units return to the period, so exactly what is left can be used', async () => {
  const world = worldWith({}, settingsWith({ amount: 300 }));
  // A rate makes the next lease ask ahead.
  await ask(world, 100);
  await ask(world, 5);
  await world.time.run(5 * SECOND_MS);
  expect(countedIn(world)).toBe(105);
  expect(admittedOf(await ask(world, 300))).toBe(195);
});

describe('a change while a lease is open', () => {
  async function withLease(settings = settingsWith({ amount: 1000 })) {
    const world = worldWith({}, settings);
    await ask(world, 100);
    await ask(world, 5);
    expect(world.gateway(0).quota.leaseState(CUSTOMER).leases).not.toEqual([]);
    return world;
  }

  test.each([
    ['a lower limit', settingsWith({ amount: 105 })],
    ['another anchor', settingsWith({ amount: 1000, anchorMs: 2 * HOUR_MS })],
    ['the end of overage', settingsWith({ amount: 1000 }), settingsWith({ amount: 1000, beyond: 'allow' })],
    ['a period where there was none', settingsWith({ amount: 1000 }), { limits: hourly(1000), usageResetAt: '' }],
  ])('%s ends it', async (_what, after, before?: QuotaSettings) => {
    const world = await withLease(before);
    const { reserves } = world.gateway(0).link.counts;
    world.gateway(0).settings = after;
    await ask(world);
    expect(world.gateway(0).link.counts.reserves).toBe(reserves + 1);
  });

  test.each([
    ['a higher limit', settingsWith({ amount: 2000 })],
    ['overage', settingsWith({ amount: 1000, beyond: 'allow' })],
    ['no period', { limits: hourly(1000), usageResetAt: '' }],
  ])('%s leaves it open', async (_what, after) => {
    const world = await withLease();
    const { reserves } = world.gateway(0).link.counts;
    world.gateway(0).settings = after;
    expect(admittedOf(await ask(world))).toBe(1);
    expect(world.gateway(0).link.counts.reserves).toBe(reserves);
  });

  test('a higher limit, a reset and overage end a remembered refusal', async () => {
    for (const after of [
      settingsWith({ amount: 11 }),
      settingsWith({}, { periodResetAt: 'now' }),
      settingsWith({ beyond: 'allow' }),
    ]) {
      const world = worldWith();
      expect(admittedOf(await ask(world, 15))).toBe(10);
      const { reserves } = world.gateway(0).link.counts;
      world.gateway(0).settings = after;
      await ask(world);
      expect(world.gateway(0).link.counts.reserves).toBe(reserves + 1);
    }
  });
});
