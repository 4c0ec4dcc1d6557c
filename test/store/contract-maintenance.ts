/** What every store promises of the maintenance. Part of the contract suite. */
import { describe, expect, test } from 'vitest';
import type { Invalidation } from '../../src/store/invalidations.ts';
import type { OpenedStore } from './opened-store.ts';

export function maintenanceContract(name: string, open: () => Promise<OpenedStore>): void {
  describe(`${name}: maintenance`, () => {
    test('is replaced as a whole, and each change is pushed', async () => {
      const { maintenance, invalidations, records } = (await open()).store;
      const pushed: Invalidation['kind'][] = [];
      invalidations.subscribe(({ kind }) => pushed.push(kind));
      expect(await maintenance.read()).toBeUndefined();
      const down = {
        mode: 'down',
        routes: ['/v1/{id}', '/'],
        untilMs: 1.8e12,
        message: 'Späť – "5 min"',
        sinceMs: 1.7e12,
      } as const;
      await maintenance.write(down);
      expect(await maintenance.read()).toEqual(down);
      await expect.poll(() => pushed).toContain('maintenance');
      pushed.length = 0;
      await maintenance.write({ mode: 'off' });
      expect(await maintenance.read()).toEqual({ mode: 'off' });
      await expect.poll(() => pushed).toContain('maintenance');
      expect((await records.listCustomers(undefined, 10)).items).toEqual([]);
    });
  });
}
