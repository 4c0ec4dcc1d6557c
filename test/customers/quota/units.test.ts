/** Requests that take several units, in virtual time: what is granted, refused, given back, and when it is free again. */
import { describe, expect, test } from 'vitest';
import type { Admission } from '../../../src/customers/quota/hourly-quota.ts';
import { unharmed } from '../../../tools/simulator/simulated-store.ts';
import { CUSTOMER, VirtualWorld, type WorldOptions } from '../../../tools/simulator/virtual-world.ts';

function worldWith(options: Partial<WorldOptions> = {}): VirtualWorld {
  return new VirtualWorld({
    seed: 1,
    gateways: 1,
    limit: 10,
    onError: 'deny',
    timeoutMs: 100,
    fate: () => unharmed(1, 1),
    dispatch: () => ({ kind: 'begins', afterMs: 0 }),
    clocks: 1,
    ...options,
  });
}

/** One request, alone. An admitted one begins at once. */
async function ask(world: VirtualWorld, units: number, gateway = world.gateway(0)): Promise<Admission> {
  let answer: Admission | undefined;
  gateway.request(
    (decided) => {
      if (decided.outcome !== 'unavailable') answer = decided;
    },
    CUSTOMER,
    units,
  );
  for (let ms = 0; answer === undefined && ms < 200; ms++) await world.time.run(1);
  if (answer === undefined) throw new Error('the request was not decided');
  return answer;
}

async function outcomesOf(world: VirtualWorld, ...units: number[]): Promise<Admission['outcome'][]> {
  const outcomes: Admission['outcome'][] = [];
  for (const each of units) outcomes.push((await ask(world, each)).outcome);
  return outcomes;
}

describe('a refused heavy request', () => {
  test('leaves the units that are left to lighter ones, and says how many', async () => {
    const world = worldWith();
    expect(await outcomesOf(world, 7)).toEqual(['admitted']);
    const refused = await ask(world, 5);
    expect(refused).toMatchObject({ outcome: 'refused', violated: [{ policy: 'hourly', amount: 10, remaining: 3 }] });
    expect(await outcomesOf(world, 2, 5, 1, 1)).toEqual(['admitted', 'refused', 'admitted', 'refused']);
    await world.time.run(5000);
    expect(world.store.used(CUSTOMER)).toBe(10);
  });

  test('holds nothing that another gateway could use', async () => {
    const world = worldWith({ gateways: 2 });
    await ask(world, 7);
    expect((await ask(world, 5)).outcome).toBe('refused');
    expect((await ask(world, 3, world.gateway(1))).outcome).toBe('admitted');
  });

  test('is remembered for requests of as many units, so that a flood of them costs no further call', async () => {
    const world = worldWith();
    await outcomesOf(world, 7, 5, 6);
    const { link } = world.gateway(0);
    const { reserves } = link.counts;
    for (let i = 0; i < 20; i++) expect(await outcomesOf(world, 5, 6)).toEqual(['refused', 'refused']);
    expect(link.counts.reserves).toBe(reserves);
  });

  test('is forgotten once a reply to a lighter one says that enough is free', async () => {
    const world = worldWith({ gateways: 2, limit: 100 });
    const held = (await ask(world, 96, world.gateway(1))) as Extract<Admission, { outcome: 'admitted' }>;
    expect(await outcomesOf(world, 5)).toEqual(['refused']);
    // The other gateway gives its units back, which the refusal cannot know.
    held.settle(false);
    await world.time.run(1300);
    expect(await outcomesOf(world, 1, 5)).toEqual(['admitted', 'admitted']);
  });
});

describe('the wait', () => {
  /** 1 unit at the beginning, 9 a minute later. */
  async function usedInTwoSteps(): Promise<VirtualWorld> {
    const world = worldWith();
    await ask(world, 1);
    await world.time.run(60_000);
    await ask(world, 9);
    await world.time.run(3000);
    return world;
  }

  test.each([
    { units: 1, bucketsAfterMs: 0 },
    { units: 2, bucketsAfterMs: 60_000 },
    { units: 5, bucketsAfterMs: 60_000 },
    { units: 10, bucketsAfterMs: 60_000 },
  ])('of a request of $units is until as many are free, and no longer', async ({ units, bucketsAfterMs }) => {
    const world = await usedInTwoSteps();
    const refused = await ask(world, units);
    const waitMs = refused.resetSeconds(0) * 1000;
    const oldestIsFreeMs = 3_600_000 + 10_000 - 63_000;
    expect(waitMs).toBeGreaterThan(oldestIsFreeMs + bucketsAfterMs - 10_000);
    expect(waitMs).toBeLessThan(oldestIsFreeMs + bucketsAfterMs + 12_000);
    await world.time.run(waitMs - 15_000);
    expect(await outcomesOf(world, units)).toEqual(['refused']);
    await world.time.run(15_000);
    expect(await outcomesOf(world, units)).toEqual(['admitted']);
  });

  test('is its own, also after a lighter one was refused', async () => {
    const world = await usedInTwoSteps();
    const [light, heavy] = [await ask(world, 1), await ask(world, 5)];
    expect(heavy.resetSeconds(0) - light.resetSeconds(0)).toBeGreaterThanOrEqual(60);
  });

  test('is that of each request, of a burst in which several are refused', async () => {
    const world = await usedInTwoSteps();
    const waits = new Map<number, number>();
    for (const units of [5, 1, 5, 1]) {
      world.gateway(0).request(
        (answer) => {
          if (answer.outcome === 'refused') waits.set(units, answer.resetSeconds(0));
        },
        CUSTOMER,
        units,
      );
    }
    await world.time.run(50);
    expect([...waits.keys()].sort()).toEqual([1, 5]);
    expect((waits.get(5) ?? 0) - (waits.get(1) ?? 0)).toBeGreaterThanOrEqual(60);
    expect(world.gateway(0).link.counts.reserves).toBeLessThanOrEqual(2 + 3);
  });
});

describe('an hour', () => {
  test.each([
    { mix: [1, 5], limit: 1000 },
    { mix: [1, 5, 1000], limit: 3000 },
    { mix: [3, 1, 7], limit: 97 },
  ])('of $limit units is used to the last one by requests of $mix', async ({ mix, limit }) => {
    const world = worldWith({ limit });
    let left = limit;
    for (let i = 0; left > 0; i++) {
      const units = mix[i % mix.length] ?? 1;
      const { outcome } = await ask(world, units);
      expect(outcome).toBe(units <= left ? 'admitted' : 'refused');
      if (outcome === 'admitted') left -= units;
    }
    expect(world.begins).toHaveLength(limit);
    expect(await outcomesOf(world, ...mix)).toEqual(mix.map(() => 'refused'));
  });

  test('that ends in a burst of light and heavy requests is used to the last unit, all of each or none', async () => {
    const world = worldWith({ limit: 37 });
    const admitted: number[] = [];
    for (let i = 0; i < 40; i++) {
      const units = i % 4 === 0 ? 5 : 1;
      world.gateway(0).request((answer) => answer.outcome === 'admitted' && admitted.push(units), CUSTOMER, units);
    }
    await world.time.run(100);
    expect(admitted.reduce((sum, units) => sum + units, 0)).toBe(37);
    expect(world.begins).toHaveLength(37);
  });
});

test('of a burst that is too large, what was granted for a heavy request does not go to lighter ones before it', async () => {
  const world = worldWith({ limit: 7 });
  const admitted: number[] = [];
  for (const units of [1, 1, 1, 5]) {
    world.gateway(0).request((answer) => answer.outcome === 'admitted' && admitted.push(units), CUSTOMER, units);
  }
  await world.time.run(50);
  expect(admitted.toSorted()).toEqual([1, 1, 5]);
});

test('units that a request gives back are all there again', async () => {
  const world = worldWith({ dispatch: () => ({ kind: 'fails', afterMs: 10 }) });
  expect(await outcomesOf(world, 10)).toEqual(['admitted']);
  await world.time.run(20);
  expect(await outcomesOf(world, 10)).toEqual(['admitted']);
  await world.time.run(5000);
  expect(world.store.used(CUSTOMER)).toBe(0);
});

test('what leases hold for later requests is there for a heavy one: their units are put together', async () => {
  const world = worldWith({ limit: 100_000 });
  for (let i = 0; i < 200; i++) world.gateway(0).request();
  await world.time.run(20);
  await ask(world, 1);
  const { quota } = world.gateway(0);
  const [lease] = quota.leaseState(CUSTOMER).leases;
  expect(lease?.units).toBeGreaterThan(0);
  expect(await outcomesOf(world, 100_000 - 201)).toEqual(['admitted']);
});

test('a busy customer of heavy requests needs hardly more calls than one of light ones', async () => {
  const callsOf = async (units: number) => {
    const world = worldWith({ limit: 1e9 });
    for (let ms = 0; ms < 20_000; ms += 2) {
      world.gateway(0).request(() => {}, CUSTOMER, units);
      await world.time.run(2);
    }
    const { reserves, refunds } = world.gateway(0).link.counts;
    return reserves + refunds;
  };
  const light = await callsOf(1);
  expect(await callsOf(50)).toBeLessThanOrEqual(1.2 * light);
});

describe('without the store', () => {
  async function cutOff(limit: number, gateways: number): Promise<VirtualWorld> {
    const world = worldWith({ limit, gateways, onError: 'local' });
    for (const { link } of world.gateways) link.cut(1e9);
    await world.time.run(200);
    return world;
  }

  test('a share is used to the last unit, by requests of any weight', async () => {
    const world = await cutOff(40, 2);
    expect(await outcomesOf(world, 15, 10, 3, 3, 2, 1)).toEqual([
      'admitted',
      'refused',
      'admitted',
      'refused',
      'admitted',
      'refused',
    ]);
    expect(world.begins).toHaveLength(20);
  });

  test('a request above the share is refused for as long as a guess may say, and uses nothing', async () => {
    const world = await cutOff(40, 2);
    const refused = await ask(world, 21);
    expect(refused).toMatchObject({ outcome: 'refused', mode: 'local', violated: [{ remaining: 20 }] });
    expect(refused.resetSeconds(0)).toBe(30);
    expect(await outcomesOf(world, 20)).toEqual(['admitted']);
    expect((await ask(world, 21)).resetSeconds(0)).toBe(30);
  });
});
