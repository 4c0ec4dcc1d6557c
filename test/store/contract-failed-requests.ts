/** What every store promises of refused and failed requests. Part of the contract suite. */
import { describe, expect, test } from 'vitest';
import { InvalidCursorError } from '../../src/store/errors.ts';
import type { FailedRequest } from '../../src/store/failed-requests.ts';
import { HOUR_MS } from '../../src/store/usage-history.ts';
import type { OpenedStore } from './opened-store.ts';

const BOUNDS = { hours: 24, entries: 10_000 };

export function failedRequestsContract(name: string, open: () => Promise<OpenedStore>): void {
  async function opened() {
    const { failedRequests: store } = (await open()).store;
    const nowMs = await store.nowMs();
    let made = 0;
    /** The latest call makes the newest request. */
    const request = (members: Partial<FailedRequest> = {}): FailedRequest => ({
      id: `a.${String(++made).padStart(5, '0')}`,
      atMs: nowMs - 60_000 + made,
      requestId: `request-${made}`,
      status: 429,
      source: 'gateway',
      method: 'GET',
      route: '/',
      ...members,
    });
    const idsOf = async (of: Partial<FailedRequest> = {}) => {
      const { customer, code } = of;
      const { items } = await store.list({ sinceMs: nowMs - 24 * HOUR_MS, customer, code }, undefined, 1000);
      return items.map(({ id }) => id);
    };
    return { store, nowMs, request, idsOf };
  }

  describe(`${name}: failed requests`, () => {
    test('come back with all members, and without those that were absent', async () => {
      const { store, nowMs, request } = await opened();
      const bare = request({ requestId: 'bare' });
      const full = request({
        requestId: 'a/b=c+d@e:f.g_h-i',
        code: 'bad_gateway',
        customer: 'acme',
        keyId: 'Ä "key" \\',
        client: '2001:db8::1',
        backend: 'default',
        upstream: 'http://127.0.0.1:1/x',
        failure: 'reset',
        durationMs: 12.5,
      });
      await store.add([bare, full], BOUNDS);
      const { items } = await store.list({ sinceMs: nowMs - HOUR_MS }, undefined, 10);
      expect(items).toStrictEqual([full, bare]);
      expect(await store.find(full.requestId, nowMs - HOUR_MS, 20)).toStrictEqual([full]);
    });

    test('are found by their whole request id, the newest first and no more than asked for', async () => {
      const { store, nowMs, request } = await opened();
      const same = Array.from({ length: 30 }, () => request({ requestId: 'chosen' }));
      await store.add([...same, request({ requestId: 'chosen-2' }), request({ requestId: 'x-chosen' })], BOUNDS);
      const found = await store.find('chosen', nowMs - HOUR_MS, 20);
      expect(found).toEqual(same.toReversed().slice(0, 20));
      for (const odd of ['chose', '*', 'chosen*', 'c?osen', '[c]hosen', '%', '', '"', '\\', 'é'])
        expect(await store.find(odd, nowMs - HOUR_MS, 20), odd).toEqual([]);
    });

    test('are listed by customer and code, in pages that miss and repeat none, also of one millisecond', async () => {
      const { store, nowMs, request } = await opened();
      const codes = ['quota_exceeded', 'invalid_key', undefined];
      const requests = Array.from({ length: 1300 }, (_, at) =>
        request({ atMs: nowMs - 1000, customer: at % 2 === 0 ? 'acme' : undefined, code: codes[at % 3] }),
      );
      await store.add(requests, BOUNDS);
      const wanted = requests.filter(({ customer, code }) => customer === 'acme' && code === 'quota_exceeded');
      const filter = { sinceMs: nowMs - HOUR_MS, customer: 'acme', code: 'quota_exceeded' };
      const listed: FailedRequest[] = [];
      let cursor: string | undefined;
      do {
        const page = await store.list(filter, cursor, 50);
        expect(page.items.length).toBeLessThanOrEqual(50);
        listed.push(...page.items);
        cursor = page.next;
      } while (cursor !== undefined);
      expect(listed).toEqual(wanted.toReversed());
      expect((await store.list({ ...filter, code: 'nothing' }, undefined, 50)).items).toEqual([]);
      await expect(store.list(filter, 'x', 50)).rejects.toThrow(InvalidCursorError);
    });

    test('are added once, however often a write is repeated', async () => {
      const { store, request, idsOf } = await opened();
      const first = request();
      await store.add([first], BOUNDS);
      await store.add([{ ...first, atMs: first.atMs + 5 }, request()], BOUNDS);
      expect(await idsOf()).toEqual(['a.00001', 'a.00002']);
    });

    test('are dropped when they are older than the bound, and not shown before', async () => {
      const { store, nowMs, request, idsOf } = await opened();
      const old = request({ atMs: nowMs - 25 * HOUR_MS });
      await store.add([old, request()], { ...BOUNDS, hours: 48 });
      expect(await idsOf()).toEqual(['a.00002']);
      expect(await store.find(old.requestId, nowMs - 24 * HOUR_MS, 20)).toEqual([]);
      expect(await store.find(old.requestId, nowMs - 48 * HOUR_MS, 20)).toEqual([old]);
      await store.add([], BOUNDS);
      expect(await store.find(old.requestId, nowMs - 48 * HOUR_MS, 20)).toEqual([]);
    });

    test('are at most as many as the bound: the newest', async () => {
      const { store, request, idsOf } = await opened();
      const bounds = { hours: 24, entries: 10 };
      for (let at = 0; at < 5; at++) {
        await store.add(
          Array.from({ length: 7 }, () => request({ customer: 'acme' })),
          bounds,
        );
      }
      expect(await idsOf()).toEqual(Array.from({ length: 10 }, (_, at) => `a.${String(35 - at).padStart(5, '0')}`));
    });

    test('of one customer do not push out those of others', async () => {
      const { store, request, idsOf } = await opened();
      const bounds = { hours: 24, entries: 100 };
      await store.add([request({ customer: 'quiet' }), request({ customer: 'quiet', code: 'bad_gateway' })], bounds);
      for (let at = 0; at < 4; at++) {
        await store.add(
          Array.from({ length: 90 }, () => request({ customer: 'loud' })),
          bounds,
        );
      }
      expect(await idsOf({ customer: 'quiet' })).toEqual(['a.00002', 'a.00001']);
      expect((await idsOf()).length).toBeLessThanOrEqual(100);
      expect((await idsOf())[0]).toBe('a.00362');
    });

    test('of any number of addresses leave half of the room to customers', async () => {
      const { store, request, idsOf } = await opened();
      const bounds = { hours: 24, entries: 100 };
      await store.add(
        Array.from({ length: 40 }, (_, at) => request({ customer: `c-${at % 5}` })),
        bounds,
      );
      for (let at = 0; at < 3; at++) {
        const flood = Array.from({ length: 90 }, (_, last) => request({ client: `2001:db8:${at}:${last}::1` }));
        await store.add(flood, bounds);
      }
      const listed = await idsOf();
      expect(listed.filter((id) => id <= 'a.00040')).toHaveLength(40);
      expect(listed.length).toBeGreaterThan(80);
      expect(listed.length).toBeLessThanOrEqual(100);
    });
  });
}
