/** The usage history in the admin API. Requests come from reservations, the rest from what instances collected. */
import { expect, it } from 'vitest';
import { DAY_MS, HOUR_MS, type UsageHistory } from '../../../src/store/usage-history.ts';
import { hourly } from '../../../src/store/windows.ts';
import { earlyInHour } from '../../support/early-in-hour.ts';
import { overBothStores, startAdmin, type TestAdmin, TOKEN } from './support.ts';

const NONE = { counts: [], totals: [], near: [] };

async function withHistory(admin: TestAdmin): Promise<{ history: UsageHistory; hourMs: number }> {
  await earlyInHour();
  for (const id of ['acme', 'globex', 'initech']) {
    await admin.records.createCustomer({ id, plan: 'starter', suspended: false });
  }
  const history = admin.store.usageHistory;
  if (history === undefined) throw new Error('the store was opened without a history');
  return { history, hourMs: Math.floor((await history.nowMs()) / HOUR_MS) * HOUR_MS };
}

const isoTime = (ms: number) => new Date(ms).toISOString().replace('.000Z', 'Z');

async function exported(admin: TestAdmin, path: string): Promise<{ text: string; type: string | null; pages: number }> {
  let [text, pages] = ['', 0];
  let next: string | undefined = path;
  let type: string | null = null;
  while (next !== undefined) {
    const response: Response = await fetch(admin.origin + next, { headers: { authorization: `Bearer ${TOKEN}` } });
    expect(response.status).toBe(200);
    text += await response.text();
    type = response.headers.get('content-type');
    next = /^<([^>]+)>; rel="next"$/.exec(response.headers.get('link') ?? '')?.[1];
    pages++;
  }
  return { text, type, pages };
}

overBothStores((start) => {
  it('shows what a customer used by hour: gaps are 0, the newest hour is open', async () => {
    const admin = await start();
    const { history, hourMs } = await withHistory(admin);
    const refusal = { customer: 'acme', hourMs: hourMs - 2 * HOUR_MS, code: 'quota_exceeded', count: 4 };
    await history.add({ ...NONE, counts: [refusal] });
    await admin.store.windows.reserve({
      customer: 'acme',
      grant: 'a',
      need: 3,
      ahead: 0,
      limits: hourly(10),
      holdMs: 1000,
      refunds: [],
    });
    const { body } = await admin.call('GET', '/admin/v1/customers/acme/usage/history');
    expect(body).toMatchObject({ customer: 'acme', step: 'hour' });
    expect(body.points).toHaveLength(24);
    expect(body.points.slice(-3)).toEqual([
      {
        start: isoTime(hourMs - 2 * HOUR_MS),
        requests: 0,
        units: 0,
        refused: 4,
        refused_by_code: { quota_exceeded: 4 },
      },
      { start: isoTime(hourMs - HOUR_MS), requests: 0, units: 0, refused: 0 },
      { start: isoTime(hourMs), requests: 3, units: 3, refused: 0, open: true },
    ]);
    const days = (await admin.call('GET', '/admin/v1/customers/acme/usage/history?step=day')).body.points;
    expect(days).toHaveLength(35);
    expect(days.at(-1)).toMatchObject({ requests: 3, units: 3, open: true });
    await admin.close();
  });

  it('a range from 1970 is a range from 1970, and has too many hours', async () => {
    const admin = await start();
    await withHistory(admin);
    const answer = await admin.call('GET', '/admin/v1/customers/acme/usage/history?from=1970-01-01T00:00:00Z');
    expect([answer.status, answer.body.detail]).toEqual([422, expect.stringContaining('more than 1000 points')]);
    await admin.close();
  });

  it('shows totals by plan', async () => {
    const admin = await start();
    const { history, hourMs } = await withHistory(admin);
    await history.add({ ...NONE, totals: [{ plan: 'starter', hourMs, what: 'refused', count: 2 }] });
    const query = `step=hour&from=${isoTime(hourMs - HOUR_MS)}&to=${isoTime(hourMs + HOUR_MS)}`;
    const { body } = await admin.call('GET', `/admin/v1/usage/history?${query}`);
    expect(body.points).toEqual([
      { start: isoTime(hourMs - HOUR_MS), plans: {} },
      { start: isoTime(hourMs), plans: { starter: { requests: 0, refused: 2, upstream_errors: 0 } }, open: true },
    ]);
    await admin.close();
  });

  it('refuses ranges that have no points, or too many', async () => {
    const admin = await start();
    await withHistory(admin);
    for (const query of [
      'from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z',
      'from=2000-01-01T00:00:00Z',
      'step=week',
    ]) {
      const { status, body } = await admin.call('GET', `/admin/v1/customers/acme/usage/history?${query}`);
      expect([status, body.code]).toEqual([422, 'unprocessable']);
    }
    expect((await admin.call('GET', '/admin/v1/customers/nobody/usage/history')).status).toBe(404);
    await admin.close();
  });

  it('lists customers near their limits by their present usage, not by what was seen last, and those that filters want', async () => {
    const admin = await start();
    const { history } = await withHistory(admin);
    const reservation = { grant: 'a', ahead: 0, limits: hourly(1000), holdMs: 1000, refunds: [] };
    await admin.store.windows.reserve({ customer: 'acme', need: 850, ...reservation });
    await admin.store.windows.reserve({ customer: 'globex', need: 990, ...reservation });
    const near = ['acme', 'globex', 'initech', 'deleted'].map((customer) => ({ customer, percent: 99 }));
    await history.add({ ...NONE, near });
    const { body } = await admin.call('GET', '/admin/v1/usage/near');
    expect(body).toEqual([
      {
        customer: 'globex',
        customer_name: null,
        plan: 'starter',
        window: 'hourly',
        limit: 1000,
        used: 990,
        percent: 99,
        reset_seconds: 41,
      },
      {
        customer: 'acme',
        customer_name: null,
        plan: 'starter',
        window: 'hourly',
        limit: 1000,
        used: 850,
        percent: 85,
        reset_seconds: 41,
      },
    ]);
    expect((await history.near(10)).map(({ customer }) => customer).sort()).toEqual(['acme', 'globex']);
    expect((await admin.call('GET', '/admin/v1/usage/near?above=90&limit=1')).body).toHaveLength(1);
    for (const [filter, found] of [
      ['above=80', ['globex', 'acme']],
      ['above=80&search=acm&plan=starter&suspended=false', ['acme']],
      ['above=80&suspended=true', []],
      ['search=glo', ['globex']],
    ] as const) {
      const { body } = await admin.call('GET', `/admin/v1/usage?${filter}`);
      expect(body.items.map(({ customer }: { customer: string }) => customer)).toEqual(found);
    }
    await admin.close();
  });

  it('exports closed hours in every format, page by page, each hour once', async () => {
    const admin = await start();
    const { history, hourMs } = await withHistory(admin);
    const closedMs = hourMs - 5 * HOUR_MS;
    const refusals = ['acme', 'globex', 'initech'].flatMap((customer) =>
      [closedMs, closedMs + HOUR_MS, hourMs].map((at) => ({ customer, hourMs: at, code: 'suspended', count: 2 })),
    );
    await history.add({ ...NONE, counts: refusals });
    const range = `from=${isoTime(hourMs - DAY_MS)}&to=${isoTime(hourMs + DAY_MS)}`;
    const csv = await exported(admin, `/admin/v1/usage/export?format=csv&limit=1&${range}`);
    const [header, ...lines] = csv.text.trimEnd().split('\n');
    expect([csv.type, header]).toEqual([
      'text/csv; charset=utf-8; header=present',
      'id,customer,start,requests,refused,units',
    ]);
    expect(csv.pages).toBeGreaterThan(1);
    const hours = [closedMs, closedMs + HOUR_MS].map(isoTime);
    const expected = ['acme', 'globex', 'initech'].flatMap((customer) =>
      hours.map((hour) => `${customer}/${hour},${customer},${hour},0,2,0`),
    );
    expect(lines.toSorted()).toEqual(expected);

    for (const format of ['jsonl', 'cloudevents', 'stripe']) {
      const { text, type } = await exported(admin, `/admin/v1/usage/export?format=${format}&${range}`);
      expect(type).toBe('application/x-ndjson; charset=utf-8');
      const documents = text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
      const ids = documents.map((each) => each.identifier ?? each.id);
      expect(ids.toSorted()).toEqual(expected.map((line) => line.slice(0, line.indexOf(','))));
    }
    await admin.close();
  });
});

it('without a history, says so', async () => {
  const admin = await startAdmin({ history: undefined });
  const { status, body } = await admin.call('GET', '/admin/v1/usage/history');
  expect([status, body.detail]).toEqual([422, 'The usage history is turned off (usage: null).']);
  await admin.close();
});
