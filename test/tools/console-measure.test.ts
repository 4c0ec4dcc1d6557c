/** What the measurement of the console fills in must be what its calls look for, or it measures empty lists. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../src/store/open/open-store.ts';
import { fillStore } from '../../tools/console/fill.ts';
import { silent } from '../support/silent.ts';

const CUSTOMERS = 300;

test('the filled store has customers near, suspended, refused and with expiring keys', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-measure-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const settings = { url: `sqlite:${join(folder, 'store.sqlite')}`, keyPrefix: 'tollgate', timeoutMs: 1000 };
  const store = await openStore({ ...settings, usage: { hoursDays: 35, days: 400 } }, silent);
  onTestFinished(() => store.close());
  const filled = await fillStore(store, CUSTOMERS);
  expect(filled).toHaveLength(CUSTOMERS);
  const { records, usageHistory, usages } = store;
  expect((await records.findCustomers({ suspended: true }, undefined, 1000)).items).toHaveLength(CUSTOMERS / 50);
  expect((await records.findCustomers({ fragments: ['falcon'] }, undefined, 1000)).items).toHaveLength(CUSTOMERS / 10);
  const { items: keys } = await records.listKeys(undefined, 1000);
  expect(keys.filter(({ expiresAt = '' }) => Date.parse(expiresAt) > Date.now())).toHaveLength(CUSTOMERS / 50);
  const near = (await usageHistory?.near(1000)) ?? [];
  expect(near).toHaveLength(CUSTOMERS / 50);
  const used = await usages.usedOf(near.map(({ customer }) => ({ customer, from: 0 })));
  expect(used.every((units) => units >= 900)).toBe(true);
  expect((await store.audit.list(undefined, 10)).items).toHaveLength(10);
});
