/** The file as it really changes: cut off, swapped by symbolic links, and under load. */
import { mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { stringify } from 'yaml';
import { loadConfig } from '../../../src/config/load.ts';
import { startGateway } from '../../../src/process/gateway.ts';
import { bearer, callAdmin } from '../../support/admin.ts';
import { startRedisSystem } from '../../support/redis-system.ts';
import { startSystem } from '../../support/system.ts';
import { rewrite, sawLine } from './support.ts';

const PATH = '/api/v1/conversations';
const QUIET = { logging: { access: 'off' } };

/** Sends one request after the other until it is stopped; resolves to how often there was each status and limit. */
function keepAsking(origin: string, key: string, askers = 4) {
  const stop = new AbortController();
  const answers = new Map<string, number>();
  const ask = async () => {
    while (!stop.signal.aborted) {
      const answer = await fetch(origin + PATH, { headers: bearer(key) });
      await answer.arrayBuffer();
      const said = `${answer.status} of ${answer.headers.get('x-ratelimit-limit')}`;
      answers.set(said, (answers.get(said) ?? 0) + 1);
    }
  };
  const asking = Promise.all(Array.from({ length: askers }, ask));
  return {
    answers,
    async stop() {
      stop.abort();
      await asking;
      return answers;
    },
  };
}

// What each single byte makes of a cut file: test/config/load.test.ts.
test('a file truncated anywhere disturbs no request, and each truncation is reported', async () => {
  const { gateway, key } = await startSystem({
    config: { plans: { starter: { requests_per_hour: 9_000_000 } }, ...QUIET },
  });
  const whole = await readFile(gateway.file, 'utf8');
  const asked = keepAsking(gateway.public, key, 2);
  const outcomes = new Map<string, number>();
  let cuts = 0;
  for (let end = 0; end < whole.length; end += 5) {
    cuts++;
    await writeFile(gateway.file, whole.slice(0, end));
    const lines = gateway.logs.length;
    const { result, problems } = await gateway.reload('signal');
    outcomes.set(result, (outcomes.get(result) ?? 0) + 1);
    const line = gateway.logs.slice(lines).find(({ trigger }) => trigger === 'signal');
    expect(line, `cut at ${end}`).toMatchObject({ result });
    if (result !== 'applied' && result !== 'unchanged') expect(problems.join(), `cut at ${end}`).not.toBe('');
  }
  await writeFile(gateway.file, whole);
  await gateway.reload('signal');
  const answers = await asked.stop();
  expect([...answers.keys()].map((said) => said.split(' ')[0])).toEqual([...answers.keys()].map(() => '200'));
  expect(outcomes.get('invalid')).toBeGreaterThan(cuts / 2);
  expect((await callAdmin(gateway, '/status')).body.config.last_reload.result).toMatch(/applied|unchanged/);
});

/** A folder as Kubernetes mounts a ConfigMap: the file is a link through `..data` to the folder of the present version. */
async function startConfigMap(content: string) {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-map-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  let version = 0;
  const swap = async (next: string) => {
    const earlier = `..version-${version}`;
    version += 1;
    const name = `..version-${version}`;
    await mkdir(join(folder, name));
    await writeFile(join(folder, name, 'gateway.yaml'), next);
    await symlink(name, join(folder, '..data_tmp'));
    await rename(join(folder, '..data_tmp'), join(folder, '..data'));
    if (version > 1) await rm(join(folder, earlier), { recursive: true });
  };
  await swap(content);
  await symlink('..data/gateway.yaml', join(folder, 'gateway.yaml'));
  return { file: join(folder, 'gateway.yaml'), swap };
}

test('of a ConfigMap that is swapped ten times within a second, the last version is applied each time', async () => {
  const { gateway: template, key } = await startSystem({ config: QUIET });
  await template.close();
  const contentOf = (limit: number) =>
    stringify({ ...template.sections, plans: { starter: { requests_per_hour: limit } } });
  const map = await startConfigMap(contentOf(1_000_000));
  const gateway = await startGateway(await loadConfig(map.file, {}), {
    logDestination: { write: () => {} },
    environment: {},
  });
  onTestFinished(() => gateway.close());
  const asked = keepAsking(gateway.addresses.public ?? '', key);
  const limitIs = (limit: number) =>
    vi.waitFor(
      async () => {
        const answer = await fetch(gateway.addresses.public + PATH, { headers: bearer(key) });
        expect(answer.headers.get('x-ratelimit-limit')).toBe(String(limit));
      },
      { timeout: 20_000, interval: 20 },
    );
  for (const round of [2_000_000, 3_000_000]) {
    for (let step = 1; step <= 10; step++) {
      // One of them is broken, and the last one counts.
      await map.swap(step === 5 ? 'plans: [' : contentOf(round + step));
      await setTimeout(50);
    }
    await limitIs(round + 10);
  }
  const answers = await asked.stop();
  expect([...answers.keys()].filter((said) => !said.startsWith('200 '))).toEqual([]);
});

test('under load a limit that goes down and up again holds at once, and fails no request', async () => {
  const plans = (limit: number) => ({ plans: { starter: { requests_per_hour: limit } } });
  const system = await startRedisSystem({ gateways: 2, config: { ...plans(1_000_000), ...QUIET } });
  const [first, second] = system.gateways;
  if (first === undefined || second === undefined) throw new Error('two gateways were asked for');
  const asking = system.gateways.map(({ public: origin }) => keepAsking(origin, system.key));
  const admitted = () => asking.reduce((sum, { answers }) => sum + (answers.get('200 of 1000000') ?? 0), 0);
  await vi.waitFor(() => expect(admitted()).toBeGreaterThan(50), { timeout: 20_000 });

  for (const gateway of system.gateways) {
    await rewrite(gateway, plans(10));
    await sawLine(gateway, /^configuration reloaded: .* 1000000 → 10$/);
    // From now on: what this gateway had in hand by the old limit is not used any more.
    const answer = await fetch(gateway.public + PATH, { headers: bearer(system.key) });
    expect(answer.status).toBe(429);
    expect(answer.headers.get('x-ratelimit-limit')).toBe('10');
    await sawLine(gateway, /^starter 1000000 → 10: 1 customer is above it now$/);
  }
  const seen = system.backend.seen.length;
  await vi.waitFor(
    () => {
      for (const { answers } of asking) expect(answers.get('429 of 10')).toBeGreaterThan(20);
    },
    { timeout: 20_000 },
  );
  // Requests that were on their way when the second gateway was told may still have arrived.
  expect(system.backend.seen.length - seen).toBeLessThanOrEqual(8);

  for (const gateway of system.gateways) {
    await rewrite(gateway, plans(2_000_000));
    await sawLine(gateway, /^configuration reloaded: .* 10 → 2000000$/);
    const answer = await fetch(gateway.public + PATH, { headers: bearer(system.key) });
    expect(answer.status).toBe(200);
  }
  const kinds = new Set<string>();
  for (const each of asking) for (const said of (await each.stop()).keys()) kinds.add(said);
  expect([...kinds].sort()).toEqual(['200 of 1000000', '200 of 2000000', '429 of 10']);
});
