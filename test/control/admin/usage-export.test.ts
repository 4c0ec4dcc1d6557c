/** Exports that are cut, resumed, left unread, or made many at a time. */
import { request } from 'node:http';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { DAY_MS, HOUR_MS, type UsageHistory } from '../../../src/store/usage-history.ts';
import { overBothStores, type StartAdmin, TOKEN } from './support.ts';

const HOURS = 2;

/** With this many customers that have usage in some hours. `reads`: of hours, by all exports. */
async function startWith(start: StartAdmin, customers: number) {
  const reads = { now: 0, most: 0, all: 0, begun: 0, pages: 0, held: Promise.resolve() };
  const admin = await start();
  const stored = admin.store.usageHistory as UsageHistory;
  const counted: UsageHistory = {
    ...stored,
    async hours(...args) {
      reads.all++;
      reads.most = Math.max(reads.most, ++reads.now);
      await reads.held;
      return stored.hours(...args).finally(() => reads.now--);
    },
    nowMs() {
      reads.begun++;
      return stored.nowMs();
    },
  };
  const records: typeof admin.records = {
    ...admin.records,
    listCustomers(...args) {
      reads.pages++;
      return admin.records.listCustomers(...args);
    },
  };
  const served = await start({ history: counted, records });
  const ids = Array.from({ length: customers }, (_, at) => `customer-${at}`);
  await Promise.all(ids.map((id) => admin.records.createCustomer({ id, plan: 'starter', suspended: false })));
  const closedMs = Math.floor((await stored.nowMs()) / HOUR_MS) * HOUR_MS - 12 * HOUR_MS;
  const hours = Array.from({ length: HOURS }, (_, hour) => closedMs + hour * HOUR_MS);
  const refusals = ids.flatMap((customer) =>
    hours.map((hourMs) => ({ customer, hourMs, code: 'quota_exceeded', count: 7 })),
  );
  await stored.add({ counts: refusals, totals: [], near: [] });
  const expected = ids.flatMap((id) => hours.map((ms) => `${id}/${new Date(ms).toISOString().replace('.000', '')}`));
  const close = async () => {
    await served.close();
    await admin.close();
  };
  return { origin: served.origin, reads, expected: expected.toSorted(), close };
}

interface ReadPage {
  readonly text: string;
  readonly next: string | undefined;
  readonly isWhole: boolean;
}

/** Reads a page, or only so many bytes of it. */
function readPage(url: string, bytes = Number.POSITIVE_INFINITY): Promise<ReadPage> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { headers: { authorization: `Bearer ${TOKEN}` }, agent: false }, (res) => {
      const chunks: Buffer[] = [];
      let left = bytes;
      const next = /^<([^>]+)>; rel="next"$/.exec(String(res.headers.link))?.[1];
      res.on('data', (chunk: Buffer) => {
        chunks.push(chunk.subarray(0, left));
        left -= chunk.length;
        if (left <= 0) res.destroy();
      });
      res.once('error', () => undefined);
      res.once('close', () =>
        resolve({ text: Buffer.concat(chunks).toString(), next, isWhole: res.complete && left > 0 }),
      );
    });
    sent.once('error', reject);
    sent.end();
  });
}

overBothStores((start) => {
  it('an export that is cut anywhere and resumed has each hour once', async () => {
    const { origin, expected, reads, close } = await startWith(start, 1000);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(60_000), { maxLength: 8 }), fc.constantFrom(100, 700), async (cuts, limit) => {
        const ids: string[] = [];
        const left = [...cuts];
        for (
          let path: string | undefined = `/admin/v1/usage/export?format=jsonl&limit=${limit}`;
          path !== undefined;
        ) {
          const page = await readPage(origin + path, left.shift());
          if (!page.isWhole) continue;
          ids.push(
            ...page.text
              .trimEnd()
              .split('\n')
              .filter(Boolean)
              .map((line) => JSON.parse(line).id),
          );
          path = page.next;
        }
        expect(ids.toSorted()).toEqual(expected);
      }),
      { numRuns: 3 },
    );
    // What was cut reads nothing any more.
    await expect.poll(() => reads.now).toBe(0);
    await close();
  });

  it('a receiver that keeps what came before the cut, and ignores known ids, has each hour once', async () => {
    const { origin, expected, close } = await startWith(start, 300);
    const requests = new Map<string, string>();
    let [path, bytes]: [string | undefined, number] = ['/admin/v1/usage/export?format=csv&limit=300', 500];
    while (path !== undefined) {
      const page: ReadPage = await readPage(origin + path, bytes);
      const lines = page.text
        .split('\n')
        .slice(0, -1)
        .filter((line) => !line.startsWith('id,'));
      for (const line of lines) requests.set(line.slice(0, line.indexOf(',')), line);
      bytes *= 2;
      if (page.isWhole) path = page.next;
    }
    expect([...requests.keys()].toSorted()).toEqual(expected);
    await close();
  });

  it('a cut ends the reading of the store', async () => {
    const { origin, reads, close } = await startWith(start, 400);
    const from = new Date(Date.now() - 30 * DAY_MS).toISOString();
    const url = `${origin}/admin/v1/usage/export?limit=1000&from=${from}`;
    await readPage(url);
    const wholeReads = reads.all;
    await Promise.all(Array.from({ length: 20 }, () => readPage(url, 1)));
    // It takes turns with what is still read for others.
    await readPage(url);
    expect(reads.all).toBeLessThan(10 * wholeReads);
    await close();
  });

  it('an export whose client is gone before its turn reads nothing', async () => {
    const { origin, reads, close } = await startWith(start, 10);
    const url = `${origin}/admin/v1/usage/export`;
    const { promise, resolve } = Promise.withResolvers<void>();
    reads.held = promise;
    const first = readPage(url);
    await expect.poll(() => reads.now).toBe(1);
    const gone = Array.from({ length: 20 }, () =>
      request(url, { headers: { authorization: `Bearer ${TOKEN}` }, agent: false }).once('error', () => undefined),
    );
    const closed = gone.map((sent) => new Promise((resolve) => sent.once('close', resolve).end()));
    await expect.poll(() => reads.begun).toBe(21);
    for (const sent of gone) sent.destroy();
    await Promise.all(closed);
    const last = readPage(url);
    await expect.poll(() => reads.begun).toBe(22);
    resolve();
    expect([(await first).isWhole, (await last).isWhole]).toEqual([true, true]);
    expect(reads.pages).toBe(2);
    await close();
  });

  it('exports take turns to read the store, and a client that does not read holds up nobody', async () => {
    const { origin, reads, expected, close } = await startWith(start, 1000);
    const url = `${origin}/admin/v1/usage/export?limit=1000`;
    const unread = request(url, { headers: { authorization: `Bearer ${TOKEN}` }, agent: false });
    await new Promise((resolve) => unread.once('response', resolve).end());
    const pages = await Promise.all(Array.from({ length: 10 }, () => readPage(url)));
    for (const { text } of pages) expect(text.trimEnd().split('\n').length).toBeGreaterThan(expected.length / 4);
    expect(reads.most).toBe(1);
    unread.destroy();
    await close();
  });

  it('all pages of an export end at the same hour, although another hour is closed meanwhile', async () => {
    const admin = await start();
    const stored = admin.store.usageHistory as UsageHistory;
    let passedMs = 0;
    const history: UsageHistory = { ...stored, nowMs: async () => (await stored.nowMs()) + passedMs };
    const served = await start({ history, records: admin.records });
    const hourMs = Math.floor((await stored.nowMs()) / HOUR_MS) * HOUR_MS;
    for (const customer of ['acme', 'globex']) {
      await admin.records.createCustomer({ id: customer, plan: 'starter', suspended: false });
      const hours = [hourMs - 10 * HOUR_MS, hourMs];
      const refusals = hours.map((hourMs) => ({ customer, hourMs, code: 'quota_exceeded', count: 1 }));
      await stored.add({ counts: refusals, totals: [], near: [] });
    }
    const lines: string[] = [];
    for (let path: string | undefined = '/admin/v1/usage/export?limit=1'; path !== undefined; ) {
      const { text, next }: ReadPage = await readPage(served.origin + path);
      lines.push(...text.split('\n').filter(Boolean));
      // As "tollgate usage export --cursor" does: of a former export only the cursor is known.
      const cursor = next && new URL(next, served.origin).searchParams.get('cursor');
      path = cursor ? `/admin/v1/usage/export?limit=1&cursor=${encodeURIComponent(cursor)}` : undefined;
      passedMs = 2 * HOUR_MS;
    }
    expect(lines).toHaveLength(2);
    expect((await served.call('GET', '/admin/v1/usage/export?cursor=made-up')).status).toBe(422);
    await served.close();
    await admin.close();
  });

  it('HEAD of an export reads no hours, and has the headers of GET', async () => {
    const { origin, reads, close } = await startWith(start, 3);
    const headers = { authorization: `Bearer ${TOKEN}` };
    const path = `${origin}/admin/v1/usage/export?limit=2`;
    const head = await fetch(path, { method: 'HEAD', headers });
    expect(reads.all).toBe(0);
    const got = await fetch(path, { headers });
    await got.text();
    for (const name of ['content-type', 'link']) expect(head.headers.get(name)).toBe(got.headers.get(name));
    await close();
  });
});
