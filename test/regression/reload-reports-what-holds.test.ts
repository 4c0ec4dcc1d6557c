/**
 * A reload reported a new `limits.target_bytes` as applied, but the parser's bound on a request's head was still that of
 * the start. And after an edit that moves lines without changing a value, `explain` named the lines of the old file.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { rewrite } from '../control/reload/support.ts';
import { callAdmin } from '../support/admin.ts';
import { startSystem } from '../support/system.ts';

test('a changed limits.target_bytes needs a restart, and the reload says so', async () => {
  const { gateway } = await startSystem();
  await rewrite(gateway, { limits: { target_bytes: 200_000 } });
  expect(await gateway.reload('signal')).toMatchObject({
    result: 'restart_required',
    problems: ['limits.target_bytes: 8192 → 200000: needs a restart'],
  });
});

test('explain names the line of a limit in the file as it was last read', async () => {
  const { gateway } = await startSystem({ config: { plans: { starter: { requests_per_hour: 20 } } } });
  const origin = async () => (await callAdmin(gateway, '/admin/v1/customers/acme/explain')).body.origin;
  const line = Number(/:(\d+)$/.exec(await origin())?.[1]);
  await writeFile(gateway.file, `# one\n# two\n${await readFile(gateway.file, 'utf8')}`);
  expect((await gateway.reload('signal')).result).toBe('unchanged');
  expect(await origin()).toBe(`${gateway.file}:${line + 2}`);
});
