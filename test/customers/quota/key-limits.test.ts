/** Limits of keys under that of their customer, in virtual time: leases, refusals, changes, and outages of the store. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ceilingOf, type KeyCeiling } from '../../../src/customers/quota/key-ceiling.ts';
import type { EnforcedKey } from '../../../src/store/record-fields.ts';
import { hourly } from '../../../src/store/windows.ts';
import type { Answer } from '../../../tools/simulator/leasing-gateway.ts';
import { unharmed } from '../../../tools/simulator/simulated-store.ts';
import { type Begin, CUSTOMER, VirtualWorld, type WorldOptions } from '../../../tools/simulator/virtual-world.ts';
import { shareOfRuns } from '../../support/share-of-runs.ts';
import { mostInAnyWindow } from './support/most-in-any-window.ts';
import {
  crash,
  HORIZON_MS,
  outage,
  plan,
  type Schedule,
  schedules,
  stop,
  WINDOW_MS,
  wallClock,
  worldOptions,
} from './support/schedules.ts';

const SECOND_MS = 1000;
/** Leases have ended by then, and their refunds are back. */
const QUIET_MS = 20 * SECOND_MS;

function ceiling(id: string, requestsPerHour: number, others: Partial<EnforcedKey> = {}): KeyCeiling {
  const found = ceilingOf({ id, customer: CUSTOMER, requestsPerHour, ...others });
  if (found === undefined || found === 'unreadable') throw new Error('the key has no limit');
  return found;
}

function worldWith(options: Partial<WorldOptions> = {}): VirtualWorld {
  return new VirtualWorld({
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
}

/** Sends requests at once, and resolves to what became of them. */
async function ask(world: VirtualWorld, count: number, key: KeyCeiling | undefined, index = 0): Promise<Answer[]> {
  const answers: Answer[] = [];
  const decided = (answer: Answer) => answers.push(answer);
  for (let asked = 0; asked < count; asked++) world.gateway(index).request(decided, CUSTOMER, 1, key);
  await world.time.run(50);
  return answers;
}

const admittedOf = (answers: readonly Answer[]) => answers.filter(({ outcome }) => outcome === 'admitted').length;

function countsOf(world: VirtualWorld, key: KeyCeiling): readonly number[] {
  const nothing = { customer: CUSTOMER, grant: '', need: 0, ahead: 0, holdMs: 0, refunds: [] };
  return world.store.reserve({ ...nothing, limits: [...hourly(1000), key.limit] }).counts.map(({ used }) => used);
}

test('a key is refused at its limit, other keys go on, and its refusal is remembered', async () => {
  const world = worldWith();
  const [a, b] = [ceiling('a', 10), ceiling('b', 10)];
  const refused = (await ask(world, 25, a)).filter(({ outcome }) => outcome === 'refused');
  expect(refused).toHaveLength(15);
  expect(refused[0]).toMatchObject({ violated: [{ policy: 'key', amount: 10, used: 10, ofCustomer: 990 }] });
  expect(admittedOf(await ask(world, 5, b))).toBe(5);
  expect(admittedOf(await ask(world, 5, undefined))).toBe(5);
  await world.time.run(QUIET_MS);
  expect(countsOf(world, a)).toEqual([20, 10]);
  await ask(world, 1, a);
  const { counts } = world.gateway(0).link;
  const calls = counts.reserves;
  expect(admittedOf(await ask(world, 100, a))).toBe(0);
  expect(counts.reserves).toBe(calls);
});

test('a customer that is used up refuses all of its keys, and uses nothing of theirs', async () => {
  const world = worldWith({ limit: 20 });
  const [a, b] = [ceiling('a', 15), ceiling('b', 15)];
  expect(admittedOf(await ask(world, 15, a))).toBe(15);
  const answers = await ask(world, 15, b);
  expect(admittedOf(answers)).toBe(5);
  expect(answers.at(-1)).toMatchObject({ outcome: 'refused', violated: [{ policy: 'hourly' }] });
  await world.time.run(QUIET_MS);
  expect(countsOf(world, b)).toEqual([20, 5]);
});

test('of several gateways, all together admit no more than the key has', async () => {
  const world = worldWith({ gateways: 4 });
  const a = ceiling('a', 10);
  let admitted = 0;
  for (let round = 0; round < 40; round++) admitted += admittedOf(await ask(world, 3, a, round % 4));
  expect(admitted).toBe(10);
});

test('units of leases that no request used return to the key, so exactly what is left can be used', async () => {
  const world = worldWith();
  const a = ceiling('a', 300);
  // A rate makes the next lease ask ahead.
  await ask(world, 100, a);
  await ask(world, 5, a);
  expect(countsOf(world, a)[1]).toBeGreaterThan(105);
  await world.time.run(QUIET_MS);
  expect(countsOf(world, a)).toEqual([105, 105]);
  expect(admittedOf(await ask(world, 400, a))).toBe(195);
});

test('another number holds from the next request on, higher or lower', async () => {
  const world = worldWith();
  await ask(world, 40, ceiling('a', 50));
  expect(admittedOf(await ask(world, 5, ceiling('a', 30)))).toBe(0);
  expect(admittedOf(await ask(world, 30, ceiling('a', 60)))).toBe(20);
});

test('keys of one line of rotations share a window, each with its own number', async () => {
  const world = worldWith();
  const [old, next] = [ceiling('a', 20), ceiling('b', 30, { root: 'a' })];
  expect(admittedOf(await ask(world, 25, old))).toBe(20);
  expect(admittedOf(await ask(world, 25, next))).toBe(10);
  expect(admittedOf(await ask(world, 5, old))).toBe(0);
});

test('of keys of one line that send at once, each is refused by its own number alone', async () => {
  const world = worldWith();
  const [old, next] = [ceiling('a', 20), ceiling('b', 200, { root: 'a' })];
  const [ofOld, ofNext] = await Promise.all([ask(world, 50, old), ask(world, 50, next)]);
  expect(admittedOf(ofNext)).toBe(50);
  expect(admittedOf(ofOld)).toBeLessThanOrEqual(20);
});

test('a reset of the key ends its leases and its refusals, and changes nothing for the customer', async () => {
  const world = worldWith();
  await ask(world, 25, ceiling('a', 20));
  await world.time.run(QUIET_MS);
  world.store.resetUsage(CUSTOMER, 'a');
  const reset = ceiling('a', 20, { usageResetAt: '2030-01-01T00:00:00Z' });
  expect(admittedOf(await ask(world, 25, reset))).toBe(20);
  await world.time.run(QUIET_MS);
  expect(countsOf(world, reset)).toEqual([40, 20]);
});

test('the usage of customer and key leaves out the unused units of all leases', async () => {
  const world = worldWith();
  const [a, b] = [ceiling('a', 500), ceiling('b', 500)];
  for (const key of [a, b, undefined]) {
    await ask(world, 100, key);
    await ask(world, 5, key);
  }
  const { quota } = world.gateway(0);
  let usage: Promise<unknown> | undefined;
  world.gateway(0).machine.run(() => {
    usage = quota.usage(CUSTOMER, [...hourly(1000), a.limit]);
  });
  await world.time.run(50);
  expect(await usage).toMatchObject({ used: 315, remaining: 685, key: { limit: 500, used: 105, remaining: 395 } });
  expect([quota.admitted(CUSTOMER), quota.admitted(CUSTOMER, 'a')]).toEqual([315, 105]);
  expect(quota.highestUsage(10)).toEqual([{ customer: CUSTOMER, ratio: 0.315 }]);
});

test('keys beyond those that memory may keep are forgotten', async () => {
  const world = worldWith({ customers: 10 });
  for (let key = 0; key < 50; key++) {
    expect(admittedOf(await ask(world, 2, ceiling(`key-${key}`, 1)))).toBe(1);
    await world.time.run(QUIET_MS);
  }
  expect(world.gateway(0).quota.admitted(CUSTOMER)).toBe(50);
  expect(admittedOf(await ask(world, 2, ceiling('key-0', 1)))).toBe(0);
});

test('a customer whose requests all have a key with a limit is remembered as long as that key', async () => {
  const world = worldWith({ customers: 10 });
  const a = ceiling('a', 1000);
  for (let other = 0; other < 50; other++) {
    expect(admittedOf(await ask(world, 2, a))).toBe(2);
    world.gateway(0).request(undefined, `other-${other}`, 1, undefined);
    await world.time.run(QUIET_MS);
  }
  expect(world.gateway(0).quota.admitted(CUSTOMER)).toBe(100);
});

describe('while the store is away', () => {
  test('a gateway admits its share of the key and of the customer, and counts it for both afterwards', async () => {
    const world = worldWith({ gateways: 2, limit: 100 });
    const [a, b] = [ceiling('a', 20), ceiling('b', 200)];
    world.gateway(0).link.cut(10 * SECOND_MS);
    const answers = await ask(world, 25, a);
    expect(admittedOf(answers)).toBe(10);
    expect(answers.at(-1)).toMatchObject({ mode: 'local', violated: [{ policy: 'key' }] });
    expect(admittedOf(await ask(world, 100, b))).toBe(40);
    expect(admittedOf(await ask(world, 5, undefined))).toBe(0);
    await world.time.run(QUIET_MS);
    expect(countsOf(world, a)).toEqual([50, 10]);
    expect(countsOf(world, b)).toEqual([50, 40]);
    // The share of the next outage is what is left of this one.
    world.gateway(0).link.cut(10 * SECOND_MS);
    expect(admittedOf(await ask(world, 25, a))).toBeLessThanOrEqual(5);
  });

  test('a unit that returns after its charge returns to the key, too', async () => {
    const world = worldWith({ dispatch: () => ({ kind: 'fails', afterMs: 1500 }) });
    const a = ceiling('a', 20);
    world.gateway(0).link.cut(700);
    expect(admittedOf(await ask(world, 5, a))).toBe(5);
    await world.time.run(QUIET_MS);
    expect(countsOf(world, a)).toEqual([0, 0]);
    expect(world.store.history(CUSTOMER)).toBe(0);
  });
});

describe('in random schedules', () => {
  const amounts = fc.record({ first: fc.integer({ min: 1, max: 30 }), second: fc.integer({ min: 1, max: 90 }) });
  const ceilingsOf = ({ first, second }: { readonly first: number; readonly second: number }) => {
    // The last one was made from the first one by a rotation, and has another number.
    return [undefined, ceiling('a', first), ceiling('b', second), ceiling('c', second, { root: 'a' })] as const;
  };
  const mostBegun = (begins: readonly Begin[]) =>
    mostInAnyWindow(
      begins.map(({ atMs }) => atMs),
      WINDOW_MS,
    );
  const ofRoot = ({ begins }: VirtualWorld, root: string) => begins.filter((begin) => begin.root === root);

  async function run(world: VirtualWorld, schedule: Schedule): Promise<void> {
    plan(world, schedule);
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    await world.time.runUntil(HORIZON_MS);
    Error.stackTraceLimit = stackTraceLimit;
  }

  test('no 3600 s see more requests begin than the customer has, nor than a key has, whatever fails', {
    timeout: 120_000,
  }, () => {
    const faults = fc.array(fc.oneof(crash, stop, wallClock), { maxLength: 12 });
    const runs = shareOfRuns(1000, 250);
    let filled = 0;
    return fc
      .assert(
        fc.asyncProperty(schedules(faults), amounts, async (schedule, numbers) => {
          const world = new VirtualWorld({ ...worldOptions(schedule), ceilings: ceilingsOf(numbers) });
          await run(world, schedule);
          expect(mostBegun(world.begins)).toBeLessThanOrEqual(schedule.limit);
          expect(mostBegun(ofRoot(world, 'a'))).toBeLessThanOrEqual(Math.max(numbers.first, numbers.second));
          expect(mostBegun(ofRoot(world, 'b'))).toBeLessThanOrEqual(numbers.second);
          if (mostBegun(ofRoot(world, 'b')) === numbers.second) filled++;
        }),
        { numRuns: runs },
      )
      .then(() => expect(filled).toBeGreaterThan(runs / 50));
  });

  test('with outages, no 3600 s see more than the limits and a share of each for every gateway', {
    timeout: 120_000,
  }, () => {
    const faults = fc.array(fc.oneof(outage, stop, wallClock), { maxLength: 8 });
    return fc.assert(
      fc.asyncProperty(schedules(faults), amounts, async (schedule, numbers) => {
        const options = { ...worldOptions(schedule), onError: 'local' as const, ceilings: ceilingsOf(numbers) };
        const world = new VirtualWorld(options);
        await run(world, schedule);
        const { limit, gateways } = schedule;
        const bound = (amount: number) => amount + gateways * Math.max(1, Math.floor(amount / gateways));
        expect(mostBegun(world.begins)).toBeLessThanOrEqual(bound(limit));
        expect(mostBegun(ofRoot(world, 'a'))).toBeLessThanOrEqual(bound(Math.max(numbers.first, numbers.second)));
        expect(mostBegun(ofRoot(world, 'b'))).toBeLessThanOrEqual(bound(numbers.second));
      }),
      { numRuns: shareOfRuns(700) },
    );
  });
});
