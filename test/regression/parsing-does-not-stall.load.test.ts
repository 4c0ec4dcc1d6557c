/**
 * A small file stopped all traffic: 60 KiB of YAML aliases posted to the preview took 15 s to resolve, 250 KiB 100 s, and
 * a reload of a file with 10,000 overrides took 0.8 s even if nothing had changed, on the thread that serves requests.
 */
import { writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, test } from 'vitest';
import { stringify } from 'yaml';
import { compareInThread, PREVIEW_BOUNDS } from '../../src/config/parser.ts';
import { load, MINIMAL, problemsOf } from '../config/support.ts';
import { bearer, callAdmin, postPreview } from '../support/admin.ts';
import type { TestGateway } from '../support/gateway.ts';
import { startSystem, type TestSystem } from '../support/system.ts';

const ALIASES = `${MINIMAL}overrides: &o {}\nx: [${Array(20_000).fill('*o').join(',')}]`;

/** Clients that do not take the CPU time of the parser. */
const PAUSE_MS = 10;
/** More than a quick machine sends while a file is parsed. */
const UNHINDERED = { logging: { access: 'off' }, plans: { starter: { requests_per_hour: 1_000_000 } } };

function withOverrides(gateway: TestGateway, limit: number): string {
  const overrides = Array.from({ length: 10_000 }, (_, i) => [`customer-${i}`, { requests_per_hour: limit }]);
  return stringify({ ...gateway.sections, overrides: Object.fromEntries(overrides) });
}

/** How many requests of a caller, one after the other with pauses, are answered while `work` is under way. */
async function answeredDuring(work: Promise<unknown>, { gateway, key }: TestSystem): Promise<number> {
  let isDone = false;
  let answered = 0;
  const done = work.finally(() => {
    isDone = true;
  });
  while (!isDone) {
    const response = await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) });
    expect(response.status).toBe(200);
    await response.body?.cancel();
    if (!isDone) answered++;
    await sleep(PAUSE_MS);
  }
  await done;
  return answered;
}

test('thousands of aliases are resolved in one pass, and reported once', async () => {
  const problems = await problemsOf(ALIASES);
  expect(problems.filter((problem) => problem.includes('repeats too much by aliases'))).toHaveLength(1);
});

test('a long text is not repeated by thousands of aliases', async () => {
  const long = `/api/v1/${'x'.repeat(100_000)}`;
  const aliases = Array.from({ length: 5000 }, (_, i) => `  /p${i}: *p\n`).join('');
  const problems = await problemsOf(`${MINIMAL}routes: [{ path: &p ${long}, methods: [GET] }]\naliases:\n${aliases}`);
  expect(problems).toEqual([expect.stringContaining('repeats too much by aliases (*name)')]);
});

test('an alias means the latest anchor of its name above it, also where the alias itself is repeated', async () => {
  const yaml = `${MINIMAL}plans:
  a: { requests_per_hour: &n 1 }
  b: &b { requests_per_hour: *n }
  c: { requests_per_hour: &n 2 }
  d: *b
  e: { requests_per_hour: *n }
`;
  const { plans } = await load(yaml);
  expect([...plans.values()].map(({ requestsPerHour }) => requestsPerHour)).toEqual([1, 1, 2, 1, 2]);
});

test('a hundred problems are listed, and the others counted', async () => {
  const problems = await problemsOf(`${MINIMAL}${Array.from({ length: 150 }, (_, i) => `k${i}: 1\n`).join('')}`);
  expect(problems).toHaveLength(101);
  expect(problems.at(-1)).toBe('gateway.yaml: 50 more problems');
});

describe('requests are served', () => {
  it('while a posted file is parsed and compared; a second preview is told to come back', async () => {
    const system = await startSystem({ config: UNHINDERED });
    const { gateway } = system;
    const file = withOverrides(gateway, 1000);
    const both = Promise.all([postPreview(gateway, file), postPreview(gateway, file)]);
    expect(await answeredDuring(both, system)).toBeGreaterThan(3);
    const [good, busy] = (await both).toSorted((a, b) => a.status - b.status);
    expect(good).toMatchObject({ status: 200, body: { reload: 'applied', changes_total: 10_000 } });
    expect(good?.body.changes).toHaveLength(100);
    expect(busy).toMatchObject({ status: 503, body: { code: 'overloaded' } });
    expect(busy?.headers.get('retry-after')).toBe('1');
    expect((await postPreview(gateway, ALIASES)).body.detail).toMatch(/repeats too much by aliases/);
  });

  it('while a large file is reloaded', async () => {
    const system = await startSystem({ config: UNHINDERED });
    const { gateway } = system;
    await writeFile(gateway.file, withOverrides(gateway, 1000));
    // Resolves after the reload that the watch of the file may have begun already.
    const reloading = gateway.reload('signal');
    expect(await answeredDuring(reloading, system)).toBeGreaterThan(3);
    expect((await reloading).problems).toEqual([]);
    const { body: running } = await callAdmin(gateway, '/admin/v1/config');
    expect(Object.keys(running.overrides)).toHaveLength(10_000);
  });
});

test('parsing that passes its deadline is ended, and reported as a problem of the file', async () => {
  const comparing = compareInThread(
    { file: '(posted)', content: Buffer.from(MINIMAL), environment: {}, folder: '/' },
    await load(MINIMAL),
    { ...PREVIEW_BOUNDS, cpuMs: 1 },
  );
  await expect(comparing).rejects.toThrow('(posted): takes longer than 0.001 s to parse; make it smaller');
});
