/** Limits tried on the past: recorded runs of real gateways, replayed, and what their usage history proves. */
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CustomerHours } from '../../src/cli/simulate-history.ts';
import { ReplayedCustomer } from '../../src/quota/replay.ts';
import { bearer, callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { REDIS_STORE, type TestGateway } from '../support/gateway.ts';
import { startSystem } from '../support/system.ts';
import { run, temporaryFile, tollgateFor, tollgateHereFor } from './support.ts';

const NOWHERE = { admin: 'http://127.0.0.1:9' };
const tollgate = tollgateHereFor(NOWHERE);
const START_MS = Date.UTC(2026, 0, 31, 9, 30);

/** One line of an access log; `members` replace or remove what a served request has. */
function line(atMs: number, members: Record<string, unknown> = {}): string {
  const request = { customer: 'acme', plan: 'starter', status: 200, duration_ms: 0, upstream_ms: 0, msg: 'request' };
  return `${JSON.stringify({ level: 'info', time: new Date(START_MS + atMs).toISOString(), ...request, ...members })}\n`;
}

const REFUSED = { status: 429, code: 'quota_exceeded', upstream_ms: undefined };

function logOf(gateway: TestGateway): Promise<string> {
  return temporaryFile('access.log', gateway.logs.map((each) => `${JSON.stringify(each)}\n`).join(''));
}

async function replayed(files: readonly string[], ...limits: string[]) {
  const { status, stdout, stderr } = await tollgate('simulate', '--json', '--log', ...files, ...limits);
  expect({ status, stderr }).toMatchObject({ status: 0 });
  return { ...JSON.parse(stdout), stderr };
}

/** Small random numbers, the same in each run. */
function numbersFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * below);
  };
}

it('a replay of five recorded hours, with the limits in force, refuses exactly what the gateway refused', async () => {
  let nowMs = START_MS;
  const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs - START_MS };
  const { gateway } = await startSystem({ clock, config: { plans: { starter: { requests_per_hour: 50 } } } });
  const keys = new Map<string, string>();
  for (const id of ['steady', 'bursting', 'rare']) {
    keys.set(id, await createCustomerWithKey(gateway, { id, plan: 'starter' }));
  }
  const refused = new Map<string, { refused: number; first_refused_at: string }>();
  const send = async (customer: string) => {
    const response = await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(keys.get(customer) ?? '') });
    if (response.status !== 429) return;
    const before = refused.get(customer) ?? { refused: 0, first_refused_at: new Date(nowMs).toISOString() };
    refused.set(customer, { ...before, refused: before.refused + 1 });
  };
  // Few enough refusals that each of them has a line of its own.
  const below = numbersFrom(7);
  while (nowMs < START_MS + 5 * 3_600_000) {
    nowMs += 1000 * (1 + below(125));
    await send('steady');
    if (below(18) === 0) await Promise.all(Array.from({ length: 5 + below(20) }, () => send('bursting')));
    if (below(20) === 0) await send('rare');
  }

  const file = await logOf(gateway);
  const { customers, plans } = await replayed([file], '--plan', 'starter=50');
  expect([...refused.keys()].sort()).toEqual(['bursting', 'steady']);
  for (const { customer, ...found } of customers) {
    const expected = refused.get(customer) ?? { refused: 0, first_refused_at: null };
    expect(found).toMatchObject({ ...expected, refused_in_log: expected.refused });
  }
  expect(plans).toMatchObject([{ plan: 'starter', customers: 3, customers_refused: 2 }]);

  // The history of the same run proves as much as it can of what the replay found.
  const lower = await replayed([file], '--plan', 'starter=30');
  const history = await tollgateHereFor(gateway)(
    'simulate',
    '--json',
    '--plan',
    'starter=30',
    '--from',
    new Date(START_MS - 3_600_000).toISOString(),
  );
  expect(history.status).toBe(0);
  const verdicts = JSON.parse(history.stdout).customers;
  expect(verdicts.map(({ customer }: { customer: string }) => customer)).toContain('rare');
  for (const { customer, verdict, refused_at_least: atLeast } of verdicts) {
    const found = lower.customers.find((each: { customer: string }) => each.customer === customer)?.refused ?? 0;
    if (verdict === 'surely') expect(found).toBeGreaterThanOrEqual(atLeast);
    if (verdict === 'surely_not') expect(found).toBe(0);
  }
  expect(verdicts).toMatchObject([
    { verdict: 'surely' },
    { verdict: 'surely' },
    { customer: 'rare' },
    { customer: 'acme' },
  ]);
}, 60_000);

it('a replay of a flood, leased, aborted and summed up, refuses as many as the gateway refused', async () => {
  const { gateway, key } = await startSystem({
    store: REDIS_STORE,
    config: { plans: { starter: { requests_per_hour: 400 } }, store: { timeout_ms: 10_000 } },
    answer: (req, res) => void (req.url?.endsWith('/reset') ? res.socket?.destroy() : res.end('{}')),
  });
  const send = (path: string) =>
    fetch(`${gateway.public}/v1/conversations${path}`, { headers: bearer(key) })
      .then((response) => response.arrayBuffer())
      .catch(() => undefined);
  for (let round = 0; round < 7; round++) {
    await Promise.all(Array.from({ length: 100 }, (_, i) => send(i % 10 === 0 ? '/reset' : '')));
    await fetch(`${gateway.public}/v1/usage`, { headers: bearer(key) });
  }
  await gateway.close();

  expect(gateway.logs.map(({ msg }) => msg)).toContain('further refusals');
  const { customers } = await replayed([await logOf(gateway)], '--plan', 'starter=400');
  expect(customers).toMatchObject([{ customer: 'acme', requests: 700, refused: 300, refused_in_log: 300 }]);
});

describe('which lines count', () => {
  it('requests count that were sent to the backend or that the quota refused, others do not', async () => {
    const file = await temporaryFile(
      'access.log',
      line(0) +
        line(1, { status: 502, code: 'bad_gateway' }) +
        line(2, { status: 499 }) +
        line(3, { status: 503, code: 'upstream_unavailable', upstream_ms: undefined }) +
        line(4, { status: 200, upstream_ms: undefined, route: '/api/v1/usage' }) +
        line(5, { status: 429, code: 'burst_exceeded', upstream_ms: undefined }) +
        line(6, REFUSED) +
        line(7, { ...REFUSED, msg: 'further refusals', requests: 40, plan: undefined, duration_ms: undefined }) +
        '{"level":"info","time":"2026-01-31T09:30:00.000Z","msg":"listening"}\n',
    );
    const { customers, plans } = await replayed([file], '--plan', 'starter=2');
    expect(customers).toEqual([
      {
        customer: 'acme',
        plan: 'starter',
        requests_per_hour: 2,
        requests: 44,
        refused: 42,
        refused_in_log: 41,
        first_refused_at: new Date(START_MS + 2).toISOString(),
      },
    ]);
    expect(plans).toEqual([
      { plan: 'starter', requests_per_hour: 2, customers: 1, customers_refused: 1, requests: 44, requests_refused: 42 },
    ]);
  });

  it('a request is counted when it arrived, not when its line was written', async () => {
    const slow = line(9000, { duration_ms: 8999.5 });
    const file = await temporaryFile('access.log', line(2) + line(3, REFUSED) + line(4, REFUSED) + slow);
    const { customers } = await replayed([file], '--plan', 'starter=2');
    expect(customers).toMatchObject([{ refused: 2, first_refused_at: new Date(START_MS + 3).toISOString() }]);
  });

  it('a limit of a customer takes precedence, and customers of other plans are left out', async () => {
    const of = (customer: string, plan: string) => [0, 1, 2].map((at) => line(at, { customer, plan })).join('');
    const file = await temporaryFile(
      'access.log',
      of('acme', 'starter') + of('globex', 'starter') + of('initech', 'business') + of('umbrella', 'business'),
    );
    const { customers } = await replayed([file], '--plan', 'starter=2', '--customer', 'acme=3', 'initech=1');
    expect(customers).toMatchObject([
      { customer: 'initech', refused: 2 },
      { customer: 'globex', refused: 1 },
      { customer: 'acme', refused: 0 },
    ]);
  });
});

describe('the files', () => {
  it('are merged by time, whatever their order, compressed or from standard input', async () => {
    const lines = Array.from({ length: 60 }, (_, i) => line(i * 100_000));
    const pick = (remainder: number) => lines.filter((_, i) => i % 3 === remainder).join('');
    const late = await temporaryFile('b.log', pick(1));
    const early = await temporaryFile('a.log.gz', gzipSync(pick(0)));
    const args = ['simulate', '--json', '--plan', 'starter=30', '--log', late, early, '-'];
    const { status, stdout } = await tollgateFor(NOWHERE)(args, { input: pick(2) });
    expect(status).toBe(0);
    // One each 100 s: the 31st is the first one that finds 30 within its hour.
    expect(JSON.parse(stdout)).toMatchObject({
      log: { from: new Date(START_MS).toISOString(), lines: 60 },
      customers: [{ requests: 60, first_refused_at: new Date(START_MS + 3_000_000).toISOString() }],
    });
  });

  it('may have damaged lines, which are counted and located', async () => {
    const file = await temporaryFile(
      'access.log',
      `${line(0)}{"level":"info","time":"2026-\n\n${line(1, { time: 'yesterday' })}null\n${line(2, { duration_ms: -1 })}` +
        `${line(3, { requests: 0 })}${line(3, { duration_ms: 1e300 })}${line(4, { customer: 7 })}${'x'.repeat(200_000)}\n${line(5)}`,
    );
    const { log, customers, stderr } = await replayed([file], '--plan', 'starter=1');
    expect(customers).toMatchObject([{ requests: 2, refused: 1 }]);
    expect(log.damaged_lines).toBeGreaterThanOrEqual(8);
    expect(stderr).toMatch(/^Damaged lines that were skipped: \d+\. The first is \S+access\.log:2\.$/m);
  });

  it('that are no access logs, or cannot be read, are an error', async () => {
    const file = await temporaryFile('other.log', 'GET /v1/conversations 200\n');
    const other = await tollgate('simulate', '--log', file, '--plan', 'starter=1');
    expect(other).toMatchObject({ status: 1, stdout: '' });
    expect(other.stderr).toMatch(/there are no lines of requests/);
    for (const missing of ['/nowhere/access.log', '/nowhere/access.log.gz']) {
      const { status, stderr } = await tollgate('simulate', '--log', missing, '--plan', 'starter=1');
      expect(status).toBe(1);
      expect(stderr).toMatch(/^tollgate: \/nowhere\/access\.log\S*: cannot be read: /);
    }
    const broken = await temporaryFile('broken.log.gz', 'no gzip');
    expect((await tollgate('simulate', '--log', broken, '--plan', 'starter=1')).status).toBe(1);
  });
});

it('says what the log cannot tell', async () => {
  const summedUp = { ...REFUSED, msg: 'further refusals', requests: 40, customer: undefined };
  const file = await temporaryFile('access.log', line(0, REFUSED) + line(1, summedUp));
  const args = ['--plan', 'starter=5', 'startr=5', '--customer', 'nobody=1'];
  const { status, stdout, stderr } = await tollgate('simulate', '--log', file, ...args);
  expect(status).toBe(0);
  expect(stdout).toMatch(/^starter +5 +1 +0 \(0 %\) +1 +0 \(0 %\)$/m);
  expect(stderr.split('\n')).toEqual([
    'No request of plan startr is in the log.',
    'No request of customer nobody is in the log.',
    'Refused requests that the log sums up without their customers, left out: 40.',
    'The log has no successful requests: it was probably written with logging.access: errors.',
    'The log begins at 2026-01-31T09:30:00Z. Requests before it are unknown, so refusals within its first hour may be missing.',
    'No customer would have been refused.',
    '',
  ]);
});

it.each([
  [[]],
  [['--log', 'access.log']],
  [['--plan', 'starter']],
  [['--plan', 'starter=0']],
  [['--plan', 'starter=many']],
  [['--log', 'access.log', '--plan', 'starter=1', '--from', '7d']],
])('simulate %j is wrong usage', async (args) => {
  expect((await tollgate('simulate', ...args)).status).toBe(2);
});

describe('the usage history', () => {
  it('proves nothing that a replay contradicts', () => {
    const arrival = fc.record({
      hour: fc.integer({ min: 0, max: 3 }),
      // Not at the very end of an hour: such a unit may still count for some seconds of the hour after the next.
      second: fc.integer({ min: 0, max: 3589 }),
    });
    fc.assert(
      fc.property(fc.array(arrival, { maxLength: 40 }), fc.integer({ min: 1, max: 12 }), (arrivals, limit) => {
        const customer = new ReplayedCustomer('acme', 'starter', limit);
        const seconds = arrivals.map(({ hour, second }) => hour * 3600 + second).sort((a, b) => a - b);
        for (const second of seconds) customer.replay(START_MS + second * 1000, 1);
        const hours = new CustomerHours('acme', 'starter', limit);
        for (let hour = 0; hour < 4; hour++) {
          const requests = arrivals.filter((each) => each.hour === hour).length;
          if (requests > 0) hours.add(hour * 3_600_000, requests);
        }
        expect(customer.refused).toBeGreaterThanOrEqual(hours.refusedAtLeast);
        if (hours.verdict === 'surely') expect(customer.refused).toBeGreaterThan(0);
        if (hours.verdict === 'surely_not') expect(customer.refused).toBe(0);
      }),
    );
  });

  it('is read of customers that the limit of the plan applies to', async () => {
    let nowMs = START_MS;
    const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs - START_MS };
    const { gateway } = await startSystem({ clock });
    for (const [id, requests, own] of [
      ['acme-2', 5, undefined],
      ['globex', 2, undefined],
      ['initech', 9, 50],
    ] as const) {
      const key = await createCustomerWithKey(gateway, { id, plan: 'starter', ...(own && { requests_per_hour: own }) });
      for (let i = 0; i < requests; i++) {
        nowMs += 1000;
        await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) });
      }
    }
    await callAdmin(gateway, '/admin/v1/customers', { body: { id: 'idle', plan: 'starter' } });
    nowMs += 2 * 3_600_000;
    const from = new Date(START_MS - 3_600_000).toISOString();
    const { status, stdout, stderr } = await tollgateHereFor(gateway)(
      ...['simulate', '--from', from, '--plan', 'starter=4', '--customer', 'nobody=1'],
    );
    const read = `Whole hours since ${from.slice(0, 19)}Z are counted. The current hour is not.`;
    expect({ status, stderr }).toEqual({ status: 0, stderr: `There is no customer nobody.\n${read}\n` });
    expect(stdout).toMatch(/^starter +4 +4 +1 +0 +3$/m);
    expect(stdout).toMatch(/^acme-2 +starter +4 +surely +1 +5 +5$/m);
    expect(stdout).not.toMatch(/globex|initech|idle/);
  });
});

it('completes the files of --log', async () => {
  const { stdout } = await run(process.execPath, ['src/main.ts', 'completion', 'bash']);
  expect(stdout).toMatch(/'tollgate simulate --log'.*\) awaited='file'/);
});
