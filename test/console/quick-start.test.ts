import { expect, it } from 'vitest';
import { bearer } from '../support/admin.ts';
import { startQuickStart } from '../support/process.ts';
import { postLogin } from './support.ts';

const GENERATED = /Log in with this start's admin token: (\S+)\n/;

it('npm start shows the address of the console on loopback, and a token of its own for each start', async () => {
  const tokens: string[] = [];
  for (let start = 0; start < 2; start++) {
    const gateway = await startQuickStart();
    const banner = gateway.output();
    expect(gateway.admin).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(banner).toContain(`Console: ${gateway.admin}/console\n`);
    const [, token = ''] = GENERATED.exec(banner) ?? [];
    expect((await postLogin(gateway.admin ?? '', token)).body).toMatchObject({ scope: 'write' });
    expect(banner).toContain(`    export TOLLGATE_ADMIN_TOKEN=${token}\n`);
    expect((await fetch(`${gateway.admin}/status`, { headers: bearer(token) })).status).toBe(200);
    tokens.push(token);
  }
  expect(tokens[0]).not.toBe(tokens[1]);
});

it('npm start does not show a token that the user set', async () => {
  const token = 'the-token-of-the-user';
  const gateway = await startQuickStart({ TOLLGATE_ADMIN_TOKEN: token });
  const banner = gateway.output();
  expect(banner).toContain('Log in with the admin token (TOLLGATE_ADMIN_TOKEN)');
  expect(banner).not.toContain(token);
  expect((await postLogin(gateway.admin ?? '', token)).status).toBe(200);
});
