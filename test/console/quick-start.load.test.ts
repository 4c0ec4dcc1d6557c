import { expect, it } from 'vitest';
import { startQuickStart } from '../support/process.ts';
import { postLogin } from './support.ts';

it('npm start does not show a token that the user set', async () => {
  const token = 'the-token-of-the-user';
  const gateway = await startQuickStart({ TOLLGATE_ADMIN_TOKEN: token });
  const banner = gateway.output();
  expect(banner).toContain('Log in with the admin token (TOLLGATE_ADMIN_TOKEN)');
  expect(banner).not.toContain(token);
  expect((await postLogin(gateway.admin ?? '', token)).status).toBe(200);
});
