import { expect, test } from 'vitest';
import { openStore } from '../../src/store/open/open-store.ts';
import { silent } from '../support/silent.ts';
import { RecordingObserver } from './contract.ts';

test.each(['http://user:hidden@127.0.0.1', 'redis', '', 'sqlite', 'rediss+x://:hidden@h'])(
  'a URL of an unknown scheme is refused without being repeated: %j',
  async (url) => {
    const surroundings = { ...silent, observer: new RecordingObserver() };
    const outcome = openStore({ url, keyPrefix: 'test', timeoutMs: 100 }, surroundings);
    await expect(outcome).rejects.toThrow(/^store\.url must (?!.*hidden)/);
  },
);
