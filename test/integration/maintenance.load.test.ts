import { test } from 'vitest';
import { switchUnderLoad } from '../support/maintenance.ts';

test('maintenance switched each second for a minute under load: 200 or 503 maintenance, and only 200 is counted', async () => {
  await switchUnderLoad(60);
});
