/** What every store promises: one suite, run over each of them. Time is real here; histories in time are tried elsewhere. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { uniqueIds } from '../../src/base/unique-ids.ts';
import type { StoreObserver, StoreOp } from '../../src/store/observer.ts';
import type { Store } from '../../src/store/store.ts';
import { type ChargedUnits, hourly, type Refund, type ReserveRequest } from '../../src/store/windows.ts';
import { createKeyWithCustomer } from '../support/stored-key.ts';
import { changesContract } from './contract-changes.ts';
import { failedRequestsContract } from './contract-failed-requests.ts';
import { historyContract } from './contract-history.ts';
import { listsContract } from './contract-lists.ts';
import { maintenanceContract } from './contract-maintenance.ts';
import { notesContract } from './contract-notes.ts';
import { noticesContract } from './contract-notices.ts';
import { notifySecretsContract } from './contract-notify-secrets.ts';
import { PORTAL_SESSION, portalSessionsContract } from './contract-portal-sessions.ts';
import { RecordedInvalidations } from './recorded-invalidations.ts';

const HOLD_MS = 2000;
const SHA256 = 'a'.repeat(64);
const OTHER_SHA256 = 'b'.repeat(64);

/** Opens an empty store; the suite closes it. */
export type OpenStore = (observer: StoreObserver) => Promise<Store>;

export class RecordingObserver implements StoreObserver {
  readonly calls: { op: StoreOp; durationSeconds: number; failed: boolean }[] = [];
  readonly changes: { up: boolean; reason: string | undefined }[] = [];
  #waiting: (() => void)[] = [];

  called(op: StoreOp, durationSeconds: number, failed: boolean): void {
    this.calls.push({ op, durationSeconds, failed });
  }

  up(up: boolean, reason?: string): void {
    this.changes.push({ up, reason });
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** Resolves once the last change is to this state. */
  async until(up: boolean): Promise<void> {
    while (this.changes.at(-1)?.up !== up) await new Promise<void>((wake) => this.#waiting.push(wake));
  }
}

const newGrantId = uniqueIds();

/** Units that were admitted without the store, under an id of their own. */
export function charged(ageMs: number, units: number): ChargedUnits {
  return { grant: newGrantId(), ageMs, units };
}

/** For another grant each time. `limit`: of the hour. */
export function request({
  limit = 10,
  ...overrides
}: Partial<ReserveRequest> & { readonly limit?: number } = {}): ReserveRequest {
  const defaults = { customer: 'acme', grant: newGrantId(), need: 1, ahead: 0, holdMs: HOLD_MS, refunds: [] };
  return { ...defaults, limits: hourly(limit), ...overrides };
}

/** `grant`: the request of it. `units`: of all refunds so far. */
export function refundOf({ grant }: ReserveRequest, units: number, isFinal = false): Refund {
  return { grant, units, isFinal };
}

/** What is counted; undefined while it cannot be read. */
export function used({ windows }: Store): Promise<number | undefined> {
  return windows.reserve(request({ need: 0 })).then(
    (grant) => grant.counts[0].used,
    () => undefined,
  );
}

export function storeContract(name: string, openStore: OpenStore): void {
  async function open() {
    const observer = new RecordingObserver();
    const store = await openStore(observer);
    onTestFinished(() => store.close());
    const { records, keyUses, audit, windows, invalidations } = store;
    return { store, records, keyUses, audit, windows, invalidations, status: () => store.status(), observer };
  }

  changesContract(name, open);
  listsContract(name, open);
  notesContract(name, open);
  notifySecretsContract(name, open);
  maintenanceContract(name, open);
  portalSessionsContract(name, open);
  historyContract(name, open);
  noticesContract(name, open);
  failedRequestsContract(name, open);

  describe(`${name}: windows`, () => {
    test('grant exactly the limit, whatever the number of simultaneous calls', async () => {
      const { windows } = await open();
      const grants = await Promise.all(
        Array.from({ length: 50 }, () => windows.reserve(request({ need: 3, limit: 100 }))),
      );
      expect(grants.reduce((sum, { granted }) => sum + granted, 0)).toBe(100);
      expect(Math.min(...grants.map(({ counts }) => counts[0].free))).toBe(0);
    });

    test('grant what is left when more is needed, and then nothing', async () => {
      const { windows } = await open();
      expect(await windows.reserve(request({ need: 7 }))).toMatchObject({ granted: 7, counts: [{ free: 3, used: 7 }] });
      expect(await windows.reserve(request({ need: 7 }))).toMatchObject({
        granted: 3,
        counts: [{ free: 0, used: 10 }],
      });
      expect(await windows.reserve(request({ need: 7 }))).toMatchObject({
        granted: 0,
        counts: [{ free: 0, used: 10 }],
      });
    });

    test('count nothing for a refusal', async () => {
      const { windows } = await open();
      await windows.reserve(request({ need: 10 }));
      for (let refusal = 0; refusal < 5; refusal += 1) await windows.reserve(request({ need: 10 }));
      expect(await windows.reserve(request({ need: 0, limit: 11 }))).toMatchObject({ counts: [{ used: 10, free: 1 }] });
    });

    test('read without taking anything when nothing is needed, and begin no window by it', async () => {
      const { windows } = await open();
      const before = await windows.reserve(request({ need: 0 }));
      expect(before).toMatchObject({ granted: 0, counts: [{ free: 10, used: 0, waitMs: -1, holdEndMs: 0 }] });
      const again = await windows.reserve(request({ need: 0 }));
      expect(again.counts[0].epoch).not.toBe(before.counts[0].epoch);
    });

    test('grant ahead no more than an eighth of what is free after the need', async () => {
      const { windows } = await open();
      expect(await windows.reserve(request({ need: 4, ahead: 1000, limit: 100 }))).toMatchObject({
        granted: 16,
        counts: [{ free: 84 }],
      });
      expect(await windows.reserve(request({ need: 4, ahead: 5, limit: 100 }))).toMatchObject({
        granted: 9,
        counts: [{ free: 75 }],
      });
    });

    test('grant nothing ahead when fewer than eight are free', async () => {
      const { windows } = await open();
      expect(await windows.reserve(request({ need: 3, ahead: 1000 }))).toMatchObject({
        granted: 3,
        counts: [{ free: 7 }],
      });
    });

    test('keep customers apart', async () => {
      const { windows } = await open();
      await windows.reserve(request({ need: 10 }));
      expect(await windows.reserve(request({ customer: 'globex', need: 10 }))).toMatchObject({ granted: 10 });
    });

    test('follow a limit that changes', async () => {
      const { windows } = await open();
      await windows.reserve(request({ need: 10 }));
      expect(await windows.reserve(request({ need: 1, limit: 5 }))).toMatchObject({
        granted: 0,
        counts: [{ free: 0, used: 10 }],
      });
      expect(await windows.reserve(request({ need: 1, limit: 12 }))).toMatchObject({
        granted: 1,
        counts: [{ free: 1, used: 11 }],
      });
    });

    test('say when the bucket of a grant drops: an hour after its end, which is the end of the hold or later', async () => {
      const { windows } = await open();
      const grant = await windows.reserve(request({ need: 10 }));
      const { storeTimeMs, bucket } = grant;
      const { holdEndMs } = grant.counts[0];
      expect(holdEndMs).toBe(storeTimeMs + HOLD_MS);
      expect(bucket).toBe(Math.floor(holdEndMs / 10_000));
      expect(grant.counts[0].waitMs).toBe((bucket + 1) * 10_000 + 3_600_000 - storeTimeMs);
    });

    test('tell the end of the last hold to whoever asks', async () => {
      const { windows } = await open();
      const grant = await windows.reserve(request({ holdMs: 10_000 }));
      expect(await windows.reserve(request({ holdMs: 0 }))).toMatchObject({
        counts: [{ holdEndMs: grant.counts[0].holdEndMs }],
      });
    });

    test('take units back into the bucket that they were counted in', async () => {
      const { windows } = await open();
      const asked = request({ need: 10 });
      await windows.reserve(asked);
      expect(await windows.refund('acme', [refundOf(asked, 4)])).toBe(4);
      expect(await windows.reserve(request({ need: 10 }))).toMatchObject({ granted: 4, counts: [{ used: 10 }] });
    });

    test.each([false, true])('refund no more than the grant had, once (the id is forgotten: %s)', async (isFinal) => {
      const { windows } = await open();
      const asked = request({ need: 6 });
      await windows.reserve(asked);
      await windows.reserve(request({ need: 2 }));
      expect(await windows.refund('acme', [refundOf(asked, 100, isFinal)])).toBe(6);
      expect(await windows.refund('acme', [refundOf(asked, 100, isFinal)])).toBe(0);
      expect(await windows.reserve(request({ need: 0 }))).toMatchObject({ counts: [{ used: 2, free: 8 }] });
    });

    test('refund in parts what each refund adds to those before, also when they come late or again', async () => {
      const { windows } = await open();
      const asked = request({ need: 6 });
      await windows.reserve(asked);
      const refunded: number[] = [];
      for (const units of [1, 3, 1, 3, 2, 6]) refunded.push(await windows.refund('acme', [refundOf(asked, units)]));
      expect(refunded).toEqual([1, 2, 0, 0, 0, 3]);
    });

    test('grant nothing to a reservation whose refund came before it', async () => {
      const { windows } = await open();
      const asked = request({ need: 6, ahead: 10 });
      for (let times = 0; times < 3; times++) {
        expect(await windows.refund('acme', [refundOf(asked, 16, true)])).toBe(0);
      }
      expect(await windows.reserve(asked)).toMatchObject({ granted: 0, counts: [{ used: 0, free: 10 }] });
      expect(await windows.refund('acme', [refundOf(asked, 16, true)])).toBe(0);
      expect(await windows.reserve(request({ need: 10 }))).toMatchObject({ granted: 10 });
    });

    test('count a report once, however often it comes, and take back what returns of it', async () => {
      const { windows } = await open();
      const report = [charged(0, 3), charged(1_800_000, 4)];
      for (let times = 0; times < 3; times++) expect(await windows.charge('acme', report)).toMatchObject({ used: 7 });
      const [first] = report;
      const refund = { grant: first?.grant ?? '', units: 2, isFinal: false };
      expect(await windows.refund('acme', [refund])).toBe(2);
      expect(await windows.refund('acme', [refund])).toBe(0);
      expect(await windows.charge('acme', [...report, charged(0, 1)])).toMatchObject({ used: 6 });
    });

    test('forget the id of a grant that is settled', async () => {
      const { windows } = await open();
      const asked = request({ need: 6 });
      await windows.reserve(asked);
      await windows.reserve(request({ need: 1, refunds: [refundOf(asked, 0, true)] }));
      // As for an id that was never granted.
      expect(await windows.refund('acme', [refundOf(asked, 6)])).toBe(0);
      expect(await windows.reserve(request({ need: 0 }))).toMatchObject({ counts: [{ used: 7 }] });
    });

    test('take nothing back that bears no relation to a grant', async () => {
      const { windows } = await open();
      await windows.reserve(request({ need: 6 }));
      expect(await windows.refund('acme', [refundOf(request(), 3)])).toBe(0);
      expect(await windows.reserve(request({ need: 0 }))).toMatchObject({ counts: [{ used: 6 }] });
    });

    test('refund nothing when the customer has no window', async () => {
      const { windows } = await open();
      const asked = request();
      await windows.reserve(asked);
      expect(await windows.refund('globex', [refundOf(asked, 1)])).toBe(0);
    });

    test('grant from what the same call gives back', async () => {
      const { windows } = await open();
      const [asked, other] = [request({ need: 6 }), request({ need: 4 })];
      for (const each of [asked, other]) await windows.reserve(each);
      const refunds = [refundOf(asked, 2), refundOf(other, 3)];
      expect(await windows.reserve(request({ need: 9, refunds }))).toMatchObject({
        granted: 5,
        counts: [{ free: 0, used: 10 }],
      });
    });

    test('count what was admitted elsewhere whatever the limit, each unit in the bucket of its own time', async () => {
      const { windows } = await open();
      await windows.reserve(request({ need: 10 }));
      const admitted = [charged(1_800_000, 4), charged(0, 3), charged(-2000, 2)];
      expect(await windows.charge('acme', admitted)).toMatchObject({ used: 19 });
      const after = await windows.reserve(request({ limit: 16 }));
      const { waitMs } = after.counts[0];
      expect(after).toMatchObject({ granted: 0, counts: [{ free: 0, used: 19 }] });
      expect(waitMs).toBeGreaterThan(1_799_000);
      expect(waitMs).toBeLessThanOrEqual(1_810_000);
    });

    test('do not count what was admitted so long ago that it has dropped, and begin no window by it', async () => {
      const { windows } = await open();
      const nothing = [charged(3_611_000, 5), charged(0, 0)];
      expect(await windows.charge('acme', nothing)).toMatchObject({ used: 0 });
      const [{ epoch }] = (await windows.reserve(request({ need: 0 }))).counts;
      expect((await windows.reserve(request({ need: 0 }))).counts[0].epoch).not.toBe(epoch);
    });

    test('count nothing later than a grant could be counted', async () => {
      const { windows } = await open();
      await windows.charge('acme', [charged(-500_000, 1)]);
      const [{ waitMs }] = (await windows.reserve(request({ need: 0, limit: 1 }))).counts;
      expect(waitMs).toBeLessThanOrEqual(3_620_000);
    });

    test('leave the end of the last hold and the epoch as they are when units are reported', async () => {
      const { windows } = await open();
      const [{ epoch, holdEndMs }] = (await windows.reserve(request())).counts;
      await windows.charge('acme', [charged(-10_000, 1)]);
      expect(await windows.reserve(request({ need: 0 }))).toMatchObject({ counts: [{ epoch, holdEndMs, used: 2 }] });
    });

    test.each<ChargedUnits>([charged(0, -1), charged(0, 0.5), charged(Number.NaN, 1)])(
      'refuse to count what makes no sense: %o',
      async (entry) => {
        const { windows, observer } = await open();
        await expect(windows.charge('acme', [entry])).rejects.toBeInstanceOf(RangeError);
        expect(observer.calls).toEqual([]);
      },
    );

    test.each([{ need: -1 }, { need: 0.5 }, { ahead: Number.NaN }, { limit: -1 }, { holdMs: 10_001 }])(
      'refuse to run a request that makes no sense: %o',
      async (overrides) => {
        const { windows, observer } = await open();
        await expect(windows.reserve(request(overrides))).rejects.toBeInstanceOf(RangeError);
        expect(observer.calls).toEqual([]);
      },
    );
  });

  describe(`${name}: records`, () => {
    const customer = {
      id: 'acme',
      plan: 'enterprise',
      name: 'Acme Corp.',
      requestsPerHour: 120_000,
      temporaryLimit: { requestsPerHour: 200_000, untilMs: 1_798_860_000_000 },
      periodRequests: 3_000_000,
      periodAnchorMs: Date.UTC(2026, 0, 31, 10),
      suspended: true,
      suspendedUntilMs: 1_798_860_000_500,
      usageResetAt: '2026-01-02T03:04:05Z',
      periodResetAt: '2026-01-03T03:04:05Z',
    };
    const key = {
      id: 'k1',
      customer: 'acme',
      name: 'production',
      prefix: 'tg_abcd',
      createdAt: '2026-01-02T03:04:05Z',
      expiresAt: '2027-01-02T03:04:05Z',
      scopes: ['messages:read', 'messages:write'],
      allowedAddresses: ['10.0.0.0/8', '2001:db8::1'],
    };

    test('return a customer as it was written', async () => {
      const { records } = await open();
      expect(await records.createCustomer(customer)).toBe('created');
      const { name: _name, ...enforced } = customer;
      expect(await records.findCustomer('acme')).toEqual(enforced);
      expect(await records.findCustomerRecord('acme')).toEqual(customer);
    });

    test('leave out what a customer does not have', async () => {
      const { records } = await open();
      const plain = { id: 'globex', plan: 'starter', suspended: false };
      await records.createCustomer(plain);
      expect(await records.findCustomer('globex')).toEqual(plain);
    });

    test('never overwrite a customer', async () => {
      const { records } = await open();
      await records.createCustomer(customer);
      expect(await records.createCustomer({ id: 'acme', plan: 'starter', suspended: false })).toBe('exists');
      expect(await records.findCustomerRecord('acme')).toEqual(customer);
    });

    test('return a key by its digest and by its id, as it was written', async () => {
      const { records } = await open();
      expect(await createKeyWithCustomer(records, SHA256, key)).toBe('created');
      const { name: _name, prefix: _prefix, createdAt: _createdAt, ...enforced } = key;
      expect(await records.findKey(SHA256)).toEqual(enforced);
      expect(await records.findKeyById('k1')).toEqual(key);
    });

    test('never overwrite a key, and know it by its first id only', async () => {
      const { records } = await open();
      await createKeyWithCustomer(records, SHA256, key);
      expect(await createKeyWithCustomer(records, SHA256, { id: 'k2', customer: 'globex' })).toBe('exists');
      expect(await records.findKeyById('k2')).toBeUndefined();
      expect(await createKeyWithCustomer(records, SHA256, { ...key, name: 'again' })).toBe('exists');
      expect(await records.findKeyById('k1')).toEqual(key);
    });

    test('create no key of a customer that is not there, nor of one that was deleted', async () => {
      const { records } = await open();
      expect(await records.createKey(SHA256, key)).toBe('no_customer');
      await records.createCustomer(customer);
      await records.deleteCustomer('acme');
      expect(await records.createKey(SHA256, key)).toBe('no_customer');
      await records.createCustomer(customer);
      expect(await records.findKey(SHA256)).toBeUndefined();
      expect(await records.findKeyById('k1')).toBeUndefined();
      expect(await records.createKey(SHA256, key)).toBe('created');
    });

    test('never give an id to a second key', async () => {
      const { records } = await open();
      await createKeyWithCustomer(records, SHA256, key);
      expect(await createKeyWithCustomer(records, OTHER_SHA256, key)).toBe('exists');
      expect(await records.findKey(OTHER_SHA256)).toBeUndefined();
      expect(await records.findKeyById('k1')).toEqual(key);
    });

    test('create a key once when several try at the same time, and find it by its id', async () => {
      const { records } = await open();
      const outcomes = await Promise.all(Array.from({ length: 10 }, () => createKeyWithCustomer(records, SHA256, key)));
      expect(outcomes.filter((outcome) => outcome === 'created')).toHaveLength(1);
      expect(await records.findKeyById('k1')).toEqual(key);
    });

    test('know nothing of what was never written', async () => {
      const { records } = await open();
      expect(await records.findKey(SHA256)).toBeUndefined();
      expect(await records.findKeyById('k1')).toBeUndefined();
      expect(await records.findCustomer('acme')).toBeUndefined();
      expect(await records.revokeKey('k1', '2026-01-02T03:04:05Z')).toBeUndefined();
      expect(await records.findKeyById('k1')).toBeUndefined();
    });

    test('keep a revoked key and the time at which it was revoked first', async () => {
      const { records } = await open();
      await createKeyWithCustomer(records, SHA256, key);
      const revoked = { ...key, revokedAt: '2026-05-06T07:08:09Z' };
      expect(await records.revokeKey('k1', '2026-05-06T07:08:09Z')).toEqual(revoked);
      expect(await records.revokeKey('k1', '2026-12-31T00:00:00Z')).toEqual(revoked);
      expect(await records.findKeyById('k1')).toEqual(revoked);
    });
  });

  describe(`${name}: a reset of usage`, () => {
    const resetAt = '2026-05-06T07:08:09Z';
    const customer = { id: 'acme', plan: 'starter', suspended: false };

    test('frees the whole limit and is written into the record', async () => {
      const { records, windows } = await open();
      await records.createCustomer(customer);
      const asked = request({ need: 10 });
      await windows.reserve(asked);
      expect(await records.resetUsage('acme', resetAt)).toEqual({ ...customer, usageResetAt: resetAt });
      expect(await records.findCustomerRecord('acme')).toEqual({ ...customer, usageResetAt: resetAt });
      // What was granted before belongs to a window that is gone.
      expect(await windows.refund('acme', [refundOf(asked, 10)])).toBe(0);
      const askedAfter = request({ need: 10 });
      const after = await windows.reserve(askedAfter);
      expect(after).toMatchObject({ granted: 10, counts: [{ used: 10, free: 0 }] });
      // Nothing of the old window is left in the bucket that the new one counts in.
      expect(await windows.refund('acme', [refundOf(askedAfter, 100)])).toBe(10);
    });

    test('touches no other customer', async () => {
      const { records, windows } = await open();
      await records.createCustomer(customer);
      await windows.reserve(request({ customer: 'globex', need: 10 }));
      await records.resetUsage('acme', resetAt);
      expect(await windows.reserve(request({ customer: 'globex' }))).toMatchObject({
        granted: 0,
        counts: [{ used: 10 }],
      });
    });

    test('makes no customer of one that is not there', async () => {
      const { records, windows } = await open();
      await windows.reserve(request({ need: 10 }));
      expect(await records.resetUsage('acme', resetAt)).toBeUndefined();
      expect(await records.findCustomer('acme')).toBeUndefined();
      expect(await windows.reserve(request({ need: 10 }))).toMatchObject({ granted: 10 });
    });
  });

  describe(`${name}: invalidations`, () => {
    const record = { id: 'k1', customer: 'acme' };

    test('tell of a key that was missing and is created, and of one that is revoked', async () => {
      const { records, invalidations } = await open();
      expect(invalidations.connected).toBe(true);
      const pushed = new RecordedInvalidations(invalidations);
      await records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
      const [customer] = await pushed.atLeast(1);
      await records.findKey(SHA256);
      await records.createKey(SHA256, record);
      const key = { kind: 'key', sha256: SHA256 };
      expect(await pushed.atLeast(2)).toEqual([customer, key]);
      await records.findKey(SHA256);
      await records.revokeKey('k1', '2026-01-01T00:00:00Z');
      expect(await pushed.atLeast(3)).toEqual([customer, key, key]);
    });

    test('tell of a customer that was missing and is created, and of a reset of its usage', async () => {
      const { records, invalidations } = await open();
      const pushed = new RecordedInvalidations(invalidations);
      await records.findCustomer('acme');
      await records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
      expect(await pushed.atLeast(1)).toEqual([{ kind: 'customer', id: 'acme' }]);
      await records.findCustomer('acme');
      await records.resetUsage('acme', '2026-01-01T00:00:00Z');
      expect(await pushed.atLeast(2)).toEqual(Array(2).fill({ kind: 'customer', id: 'acme' }));
    });

    test('are no longer told to who stopped listening, and still to others', async () => {
      const { records, invalidations } = await open();
      const former = new RecordedInvalidations(invalidations);
      const current = new RecordedInvalidations(invalidations);
      former.stop();
      await records.findKey(SHA256);
      await createKeyWithCustomer(records, SHA256, record);
      await current.atLeast(1);
      expect(former.all).toEqual([]);
    });
  });

  describe(`${name}: status`, () => {
    test('is up and reached, and tells its observer of every call', async () => {
      const { store, records, windows, observer, status } = await open();
      await records.findKey(SHA256);
      await windows.reserve(request());
      const sound = { reached: true, invalidation: 'connected', wiped: false };
      // A store in this process leaves these out.
      expect({ ...sound, ...status() }).toMatchObject({ up: true, refusing: false, ...sound });
      expect(store.isUp()).toBe(true);
      expect(observer.changes).toEqual([{ up: true, reason: undefined }]);
      expect(observer.calls.map(({ op, failed }) => ({ op, failed }))).toEqual([
        { op: 'read_key', failed: false },
        { op: 'reserve', failed: false },
      ]);
      expect(observer.calls.every(({ durationSeconds }) => durationSeconds > 0 && durationSeconds < 10)).toBe(true);
    });

    test('is told to the observer under the names of the calls', async () => {
      const { store, records, windows, observer } = await open();
      await windows.charge('acme', []);
      await records.resetUsage('acme', '2026-01-01T00:00:00Z');
      const { instances, storeTimeMs } = await store.announce('instance-1');
      expect(instances).toBe(1);
      expect(Math.abs(storeTimeMs - Date.now())).toBeLessThan(60_000);
      expect(observer.calls.map(({ op }) => op)).toEqual(['report', 'reset_usage', 'announce']);
    });

    test("is told of each of the admin API's calls, too", async () => {
      const { store, records, keyUses, audit, observer } = await open();
      const calls: [StoreOp, () => Promise<unknown>][] = [
        ['list_customers', () => records.listCustomers(undefined, 10)],
        ['update_customer', () => records.updateCustomer('acme', { plan: 'starter' })],
        ['delete_customer', () => records.deleteCustomer('acme')],
        ['list_keys', () => records.listKeys(undefined, 10)],
        ['list_customer_keys', () => records.listCustomerKeys('acme', undefined, 1000)],
        ['update_key', () => records.updateKey('k1', { name: 'x' })],
        ['retire_key', () => records.retireKey('k1', {}, { replacedBy: 'k2', expiresAt: '2026-01-01T00:00:00Z' })],
        ['discard_key', () => records.discardKey('k1')],
        ['reindex', () => records.reindex()],
        ['note_uses', () => keyUses.noteUses([{ keyId: 'k1', usedAtMs: 1 }])],
        ['read_uses', () => keyUses.lastUses(['k1'])],
        ['rotate_notify_secret', () => store.notifySecrets.rotate('acme', 'whsec_x', 1000)],
        ['read_notify_secret', () => store.notifySecrets.inForce('acme')],
        ['add_portal_session', () => store.portalSessions.add('code', 'a', PORTAL_SESSION, 1000)],
        ['read_portal_session', () => store.portalSessions.find('cookie', 'a')],
        ['end_portal_session', () => store.portalSessions.endAll('acme')],
        ['count_portal_write', () => store.portalSessions.countWrite('acme', 'x', 60)],
        ['append_audit', () => audit.append({ at: '2026-01-01T00:00:00Z', actor: 'token', from: '::1', action: 'x' })],
        ['read_audit', () => audit.list(undefined, 10)],
      ];
      for (const [op, call] of calls) {
        observer.calls.length = 0;
        await call();
        expect([...new Set(observer.calls.map((called) => called.op))]).toEqual([op]);
        expect(observer.calls.some(({ failed }) => failed)).toBe(false);
      }
    });

    test('is not up once the store is closed', async () => {
      const { store } = await open();
      await store.close();
      expect(store.isUp()).toBe(false);
    });
  });
}
