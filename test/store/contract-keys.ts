/** What every store promises of the limits of keys: they hold beside those of the customer, by the same grants. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { hourly, type ReserveRequest } from '../../src/store/windows.ts';
import { charged, type OpenStore, RecordingObserver, refundOf, request } from './contract.ts';

/** A reservation of the customer's hour, which allows 100 units, and of a key. */
const ofKey = (amount: number, root: string, asked: Partial<ReserveRequest> = {}) =>
  request({ limits: [...hourly(100), { policy: 'key', amount, root }], ...asked });

const ofCustomer = (asked: Partial<ReserveRequest> = {}) => request({ limit: 100, ...asked });

export function keysContract(name: string, openStore: OpenStore): void {
  async function open() {
    const store = await openStore(new RecordingObserver());
    onTestFinished(() => store.close());
    return store;
  }

  describe(`${name}: limits of keys`, () => {
    test('a grant takes the same units from the customer and the key, and from no other key', async () => {
      const { windows } = await open();
      expect(await windows.reserve(ofKey(10, 'a', { need: 4 }))).toMatchObject({
        granted: 4,
        counts: [
          { policy: 'hourly', used: 4, free: 96 },
          { policy: 'key', used: 4, free: 6 },
        ],
      });
      expect(await windows.reserve(ofKey(10, 'b', { need: 1 }))).toMatchObject({ counts: [{ used: 5 }, { used: 1 }] });
      expect(await windows.reserve(ofCustomer({ need: 3 }))).toMatchObject({ granted: 3, counts: [{ used: 8 }] });
    });

    test('a refusal by the key or by the customer uses nothing of the other', async () => {
      const { windows } = await open();
      await windows.reserve(ofKey(2, 'a', { need: 2 }));
      expect(await windows.reserve(ofKey(2, 'a', { need: 3 }))).toMatchObject({
        granted: 0,
        counts: [{ used: 2 }, {}],
      });
      await windows.reserve(ofCustomer({ need: 98 }));
      const refused = await windows.reserve(ofKey(50, 'b', { need: 1 }));
      expect(refused).toMatchObject({ granted: 0, counts: [{ free: 0 }, { free: 50, used: 0 }] });
    });

    test('keys with the same root share a window, each with its own number', async () => {
      const { windows } = await open();
      await windows.reserve(ofKey(10, 'a', { need: 5 }));
      expect(await windows.reserve(ofKey(5, 'a'))).toMatchObject({ granted: 0, counts: [{}, { free: 0, used: 5 }] });
      expect(await windows.reserve(ofKey(10, 'a'))).toMatchObject({ granted: 1, counts: [{}, { used: 6 }] });
    });

    test('a refund that names the root returns units to both windows, however often it is sent', async () => {
      const { windows } = await open();
      const asked = ofKey(10, 'a', { need: 6 });
      await windows.reserve(asked);
      for (let times = 0; times < 3; times++) await windows.refund('acme', [refundOf(asked, 2)], 'a');
      const refunds = [refundOf(asked, 3, true)];
      expect(await windows.reserve(ofKey(10, 'a', { need: 0, refunds }))).toMatchObject({
        counts: [
          { used: 3, free: 97 },
          { used: 3, free: 7 },
        ],
      });
    });

    test('units admitted without the store count in both windows, and their refund returns to both', async () => {
      const { windows } = await open();
      const [a, b] = [
        { ...charged(0, 3), root: 'a' },
        { ...charged(0, 3), root: 'b' },
      ];
      const report = [a, b, charged(0, 3)];
      for (let times = 0; times < 2; times++) {
        const counted = await windows.charge('acme', report);
        expect(counted).toMatchObject({ used: 9 });
        expect([...counted.usedOfKeys]).toEqual([
          ['a', 3],
          ['b', 3],
        ]);
      }
      await windows.refund('acme', [{ grant: a.grant, units: 2, isFinal: true }], 'a');
      expect(await windows.reserve(ofKey(10, 'a', { need: 0 }))).toMatchObject({ counts: [{ used: 7 }, { used: 1 }] });
      expect(await windows.reserve(ofKey(10, 'b', { need: 0 }))).toMatchObject({ counts: [{ used: 7 }, { used: 3 }] });
    });

    test('usages of keys are read as those of customers', async () => {
      const { windows, usages } = await open();
      await windows.reserve(ofKey(10, 'a', { need: 6, holdMs: 10_000 }));
      await windows.reserve(ofCustomer());
      const asked = [{ root: 'a' }, { root: 'b' }, {}].map((each) => ({ customer: 'acme', from: 0, ...each }));
      expect(await usages.usedOf(asked)).toEqual([6, 0, 7]);
      // Both are units of a lease that may still be refunded.
      expect(await usages.settledOf('acme', 'a')).toBe(0);
    });

    test('a reset of a key empties its window alone, and refunds of before take nothing out of the new one', async () => {
      const { windows, records } = await open();
      await records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
      await records.createKey('a'.repeat(64), { id: 'a', customer: 'acme', requestsPerHour: 10 });
      const asked = ofKey(10, 'a', { need: 6 });
      await windows.reserve(asked);
      await records.resetKeyWindow('acme', 'a');
      expect(await records.noteKeyReset('a', '2030-01-01T00:00:00.000Z')).toMatchObject({
        usageResetAt: '2030-01-01T00:00:00.000Z',
      });
      await windows.reserve(ofKey(10, 'a', { need: 2 }));
      await windows.refund('acme', [refundOf(asked, 6, true)], 'a');
      expect(await windows.reserve(ofKey(10, 'a', { need: 0 }))).toMatchObject({ counts: [{ used: 2 }, { used: 2 }] });
    });

    test('a customer that is created again begins with empty windows of its keys', async () => {
      const { windows, records } = await open();
      const create = async () => {
        await records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
        await records.createKey('a'.repeat(64), { id: 'a', customer: 'acme', requestsPerHour: 10 });
        await records.createKey('b'.repeat(64), { id: 'b', customer: 'acme', requestsPerHour: 10, root: 'former' });
      };
      await create();
      for (const root of ['a', 'former']) await windows.reserve(ofKey(10, root, { need: 5 }));
      await records.deleteCustomer('acme');
      await create();
      for (const root of ['a', 'former']) {
        expect(await windows.reserve(ofKey(10, root, { need: 0 }))).toMatchObject({
          counts: [{ used: 0 }, { used: 0 }],
        });
      }
    });

    test('a key keeps its limit and its root in its record, and a rotation that saw another limit retires nothing', async () => {
      const { records } = await open();
      await records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
      await records.createKey('a'.repeat(64), { id: 'b', customer: 'acme', requestsPerHour: 10, root: 'a' });
      expect(await records.findKey('a'.repeat(64))).toMatchObject({ requestsPerHour: 10, root: 'a' });
      expect(await records.updateKey('b', { requestsPerHour: 20 })).toMatchObject({ requestsPerHour: 20, root: 'a' });
      const replacement = { replacedBy: 'c', expiresAt: '2030-01-01T00:00:00.000Z' };
      expect(await records.retireKey('b', { requestsPerHour: 10 }, replacement)).not.toHaveProperty('replacedBy');
      expect(await records.retireKey('b', { requestsPerHour: 20 }, replacement)).toMatchObject(replacement);
      expect(await records.updateKey('b', { requestsPerHour: null })).not.toHaveProperty('requestsPerHour');
    });
  });
}
