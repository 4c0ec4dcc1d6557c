import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { openStore } from '../../src/store/open/open-store.ts';
import { silent } from '../support/silent.ts';
import { createStoreFile } from '../support/store-file.ts';
import { type OpenStore, storeContract } from './contract.ts';
import { RETENTION } from './contract-history.ts';
import { keysContract } from './contract-keys.ts';
import { periodsContract } from './contract-periods.ts';

let folder: string;
let storeNumber = 0;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-embedded-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const open: OpenStore = (observer) => {
  storeNumber += 1;
  const settings = {
    url: createStoreFile(folder, `${storeNumber}.db`),
    keyPrefix: 'test',
    timeoutMs: 2000,
    usage: RETENTION,
  };
  return openStore(settings, { ...silent, observer });
};

storeContract('the embedded store', open);
periodsContract('the embedded store', open);
keysContract('the embedded store', open);
