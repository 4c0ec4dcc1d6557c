/** What every store promises of the secrets that sign customers' notices. Part of the contract suite. */
import { describe, expect, test } from 'vitest';
import type { OpenedStore } from './opened-store.ts';

const DAY_MS = 24 * 3600 * 1000;

export function notifySecretsContract(name: string, open: () => Promise<OpenedStore>): void {
  async function openWithCustomers() {
    const { store } = await open();
    for (const id of ['acme', 'globex']) await store.records.createCustomer({ id, plan: 'starter', suspended: false });
    return { records: store.records, secrets: store.notifySecrets };
  }

  describe(`${name}: secrets of notices`, () => {
    test('are none until one is made', async () => {
      const { secrets } = await openWithCustomers();
      expect(await secrets.inForce('acme')).toEqual([]);
      expect(await secrets.rotate('acme', 'first', DAY_MS)).toBe(false);
      expect(await secrets.inForce('acme')).toEqual(['first']);
      expect(await secrets.inForce('globex')).toEqual([]);
    });

    test('are two while one is rotated, the newest first, and never more', async () => {
      const { secrets } = await openWithCustomers();
      for (const secret of ['first', 'second']) await secrets.rotate('acme', secret, DAY_MS);
      expect(await secrets.inForce('acme')).toEqual(['second', 'first']);
      expect(await secrets.rotate('acme', 'third', DAY_MS)).toBe(true);
      expect(await secrets.inForce('acme')).toEqual(['third', 'second']);
    });

    test('are one again after the grace period', async () => {
      const { secrets } = await openWithCustomers();
      await secrets.rotate('acme', 'first', DAY_MS);
      await secrets.rotate('acme', 'second', 1);
      await expect.poll(() => secrets.inForce('acme')).toEqual(['second']);
    });

    test('are never made for a customer that does not exist', async () => {
      const { secrets } = await openWithCustomers();
      expect(await secrets.rotate('nobody', 'first', DAY_MS)).toBeUndefined();
      expect(await secrets.inForce('nobody')).toEqual([]);
    });

    test('are deleted with the customer', async () => {
      const { records, secrets } = await openWithCustomers();
      for (const secret of ['first', 'second']) await secrets.rotate('acme', secret, DAY_MS);
      await secrets.rotate('globex', 'other', DAY_MS);
      await records.deleteCustomer('acme');
      await records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
      expect(await secrets.inForce('acme')).toEqual([]);
      expect(await secrets.inForce('globex')).toEqual(['other']);
    });
  });
}
