/** `tollgate check-key` against a check listener. */
import { expect, test, vi } from 'vitest';
import { MAIN, run, tollgateHereReading } from '../cli/support.ts';
import { CHECK_TOKEN, createLimitedKey, startCheckSystem, usedOf } from './support.ts';

async function checkKey(key: string, args: readonly string[], token = CHECK_TOKEN) {
  vi.stubEnv('TOLLGATE_CHECK_TOKEN', token);
  try {
    return await tollgateHereReading(`${key}\n`, 'check-key', ...args);
  } finally {
    vi.unstubAllEnvs();
  }
}

test('tells yes by 0 and no by 1, with the reason, and uses nothing', async () => {
  const { gateway, key } = await startCheckSystem({ limit: 5 });
  const limited = await createLimitedKey(gateway);
  const at = ['--check-url', gateway.check];
  // The program itself, once: it reads a pipe, and ends with the status.
  const question = ['--json', '--path', '/v1/orders/1?x', '--method', 'POST'];
  const yes = await run(process.execPath, [MAIN, 'check-key', ...at, ...question], {
    env: { TOLLGATE_CHECK_TOKEN: CHECK_TOKEN },
    input: `${key}\n`,
  });
  expect([yes.status, JSON.parse(yes.stdout)]).toMatchObject([0, { allowed: true, customer: 'acme', remaining: 5 }]);
  const no = await checkKey(limited, [...at, '--path', '/v1/orders']);
  expect([no.status, no.stdout]).toEqual([1, expect.stringMatching(/^no: .*scope orders.*\(insufficient_scope\)\n$/)]);
  expect(await checkKey(key, [...at, '--path', 'orders'])).toMatchObject({ status: 1, stdout: '' });
  expect(await usedOf(gateway)).toBe(0);
});

test('says what to do if there is no decision, and repeats no key', async () => {
  const { gateway, key } = await startCheckSystem();
  const wrong = await checkKey(key, ['--check-url', gateway.check], 'wrong');
  expect(wrong).toMatchObject({ status: 1, stdout: '', stderr: expect.stringContaining('set TOLLGATE_CHECK_TOKEN') });
  const elsewhere = await checkKey(key, ['--check-url', gateway.ops]);
  expect(elsewhere).toMatchObject({ status: 1, stdout: '' });
  const nowhere = await checkKey(key, ['--check-url', 'http://127.0.0.1:1']);
  expect(nowhere).toMatchObject({ status: 1, stderr: expect.stringContaining('--check-url sets its address') });
  expect(await checkKey('', ['--check-url', gateway.check])).toMatchObject({ status: 2 });
  for (const { stderr } of [wrong, elsewhere, nowhere]) expect(stderr).not.toContain(key);
});
