/** What becomes of a file by itself: a fake of the file and of the store's answers, and time that stands still. */
import { expect, test } from 'vitest';
import type { Config } from '../../../src/config/config.ts';
import { digestOfSource } from '../../../src/config/config-files.ts';
import { parseConfig } from '../../../src/config/load.ts';
import { Reloader } from '../../../src/control/reload/reloader.ts';
import { createLogger } from '../../../src/observability/logger.ts';
import type { ReloadResult } from '../../../src/observability/metrics.ts';
import { StoreUnavailableError } from '../../../src/store/errors.ts';
import { MINIMAL } from '../../config/support.ts';

const A = 'plans: { a: { requests_per_hour: 10 }, b: { requests_per_hour: 20 } }\n';
const LOWER = 'plans: { a: { requests_per_hour: 5 }, b: { requests_per_hour: 20 } }\n';
const WITHOUT_B = 'plans: { a: { requests_per_hour: 10 } }\n';
const RESTART = `${A}listen: { port: 1 }\n`;
const FAULTY = `${A}nonsense: 1\n`;

/** As if the file named another one that has `secret`. */
async function parse(content: Uint8Array | string, secret: string): Promise<Config> {
  const config = await parseConfig('gateway.yaml', Buffer.from(content), {});
  return { ...config, source: { namedFiles: [], digest: digestOf(Buffer.from(content), secret) } };
}

const digestOf = (content: Uint8Array, secret: string) => digestOfSource(content, [Buffer.from(secret)]);

async function start() {
  let nowMs = 0;
  const lines: Record<string, unknown>[] = [];
  const counted: ReloadResult[] = [];
  const world = {
    file: MINIMAL + A,
    secret: 'one',
    parsed: 0,
    holders: 0,
    isStoreUp: true,
    canApply: true,
    walks: 0,
    applied: 0,
    lines,
    counted,
    advance: (ms: number) => {
      nowMs += ms;
    },
    write: (rest: string) => {
      world.file = MINIMAL + rest;
    },
    results: () => lines.flatMap(({ result }) => (result === undefined ? [] : [result])),
  };
  const reloader = new Reloader({
    limitClock: { nowMs: () => nowMs },
    running: await parse(world.file, world.secret),
    runningSinceMs: nowMs,
    read: async () => Buffer.from(world.file),
    digestOf: async (content) => digestOf(content, world.secret),
    parse: (content) => {
      world.parsed++;
      return parse(content, world.secret);
    },
    apply: async () => {
      if (!world.canApply) throw new Error('a bug');
      world.applied++;
    },
    records: {
      listCustomers: async () => {
        world.walks++;
        if (!world.isStoreUp) throw new StoreUnavailableError('away');
        const items = Array.from({ length: world.holders }, (_, i) => ({ id: `c${i}`, plan: 'b', suspended: false }));
        return { items, next: undefined };
      },
    },
    usages: { usedOf: async (asked) => asked.map(() => 0), presentPeriodsOf: async () => [] },
    metrics: { configReloaded: (result) => void counted.push(result) },
    logger: createLogger({ level: 'info', destination: { write: (line) => void lines.push(JSON.parse(line)) } }),
    clock: { nowMs: () => nowMs, monotonicMs: () => nowMs },
  });
  const look = async () => (await reloader.reload('noticed')).result;
  expect(await look()).toBe('unchanged');
  return { world, reloader, look };
}

test.each([
  ['has faults', FAULTY, 'invalid'],
  ['needs a restart', RESTART, 'restart_required'],
])(
  'a file that %s is reported once, however often it is checked, and again on a requested reload',
  async (_, file, result) => {
    const { world, reloader, look } = await start();
    world.write(file);
    for (let i = 0; i < 5; i++) expect(await look()).toBe(result);
    expect(world.results()).toEqual([result]);
    await reloader.reload('admin');
    expect(world.results()).toEqual([result, result]);
    world.write(A);
    expect([await look(), await look()]).toEqual(['unchanged', 'unchanged']);
    expect(world.counted).toEqual([result, result, 'unchanged']);
    expect(reloader.last?.problems).toEqual([]);
    expect(world.applied).toBe(0);
  },
);

test('the file of the start is not reported', async () => {
  const { world, reloader, look } = await start();
  expect(await look()).toBe('unchanged');
  expect([world.lines, world.counted, reloader.last]).toEqual([[], [], undefined]);
});

test('a look that finds what runs says nothing, after a reload and after an edit of comments; a request to reload does', async () => {
  const { world, reloader, look } = await start();
  world.write(LOWER);
  expect([await look(), await look(), await look()]).toEqual(['applied', 'unchanged', 'unchanged']);
  expect(reloader.last?.result).toBe('applied');
  world.file = `${world.file}# a comment\n`;
  expect([await look(), await look()]).toEqual(['unchanged', 'unchanged']);
  expect(world.results()).toEqual(['applied']);
  await reloader.reload('signal');
  await reloader.reload('admin');
  expect(world.results()).toEqual(['applied', 'unchanged', 'unchanged']);
});

test('whether customers hold a dropped plan is asked until the store says, and then once a minute', async () => {
  const { world, look } = await start();
  world.write(WITHOUT_B);
  world.isStoreUp = false;
  world.holders = 2;
  expect([await look(), await look()]).toEqual(['unverified', 'unverified']);
  world.isStoreUp = true;
  expect([await look(), await look(), await look()]).toEqual(['plan_in_use', 'plan_in_use', 'plan_in_use']);
  expect(world.results()).toEqual(['unverified', 'plan_in_use']);
  expect(world.walks).toBe(3);
  world.holders = 0;
  expect(await look()).toBe('plan_in_use');
  world.advance(60_000);
  expect(await look()).toBe('applied');
  expect(world.applied).toBe(1);
});

test('what cannot be applied leaves everything as it was, and is tried again', async () => {
  const { world, reloader, look } = await start();
  const { hash } = reloader.running;
  world.write(LOWER);
  world.canApply = false;
  expect(await look()).toBe('failed');
  expect(reloader.running.hash).toBe(hash);
  world.canApply = true;
  expect(await look()).toBe('applied');
  expect(reloader.running.plans.get('a')).toEqual({ requestsPerHour: 5 });
});

test('attempts at the same time are made one after the other, and the last file is what runs', async () => {
  const { world, reloader } = await start();
  world.write(LOWER);
  const attempts = [reloader.reload('noticed'), reloader.reload('signal'), reloader.reload('admin')];
  const results = (await Promise.all(attempts)).map(({ result }) => result);
  expect(results).toEqual(['applied', 'unchanged', 'unchanged']);
  await reloader.close();
  expect((await reloader.reload('admin')).result).toBe('failed');
});

test('what has not changed is not parsed again at each look, and a secret beside it that has is not overlooked', async () => {
  const { world, reloader } = await start();
  await reloader.reload('noticed');
  const once = world.parsed;
  for (let look = 0; look < 3; look++) expect((await reloader.reload('noticed')).result).toBe('unchanged');
  expect(world.parsed).toBe(once);
  world.secret = 'two';
  await reloader.reload('noticed');
  expect(world.parsed).toBe(once + 1);
  await reloader.reload('admin');
  expect(world.parsed).toBe(once + 1);
});

test('a corrected file is reported, even if it equals the running one', async () => {
  const { world, reloader } = await start();
  await reloader.reload('noticed');
  await reloader.reload('noticed');
  const right = world.file;
  world.file = 'plans: [';
  expect((await reloader.reload('noticed')).result).toBe('invalid');
  world.file = right;
  await reloader.reload('noticed');
  expect(world.results()).toEqual(['invalid', 'unchanged']);
});
