import { spawnSync } from 'node:child_process';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { callAdmin } from '../support/admin.ts';
import { ADMIN_TOKEN, EMBEDDED_STORE, startTestGateway, type TestGateway, type TestStore } from '../support/gateway.ts';
import { run, shellWords, temporaryFile } from './support.ts';

let store: TestStore;
let gateway: TestGateway;

beforeEach(async () => {
  store = await EMBEDDED_STORE.start();
  gateway = await startTestGateway({ storeUrl: store.url, upstreamUrl: 'http://127.0.0.1:9' });
  await callAdmin(gateway, '/admin/v1/customers', { body: { id: 'acme', plan: 'starter' } });
});

afterEach(async () => {
  await gateway.close();
  await store.close();
});

/** At a terminal, whose typist answers `typed`. Both outputs are what is on the screen. */
function atTerminal(args: readonly string[], typed: string) {
  const env = { TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN };
  return run('script', ['--quiet', '--return', '--command', shellWords(gateway, args), '/dev/null'], {
    env,
    input: typed,
  });
}

const customerStatus = async () => (await callAdmin(gateway, '/admin/v1/customers/acme')).status;

// util-linux's, which Debian always has; others know no --command.
const noTerminal = spawnSync('script', ['--version']).status !== 0;

it.skipIf(noTerminal)('deletes a customer once the user confirmed', async () => {
  await callAdmin(gateway, '/admin/v1/customers/acme/keys', { body: {} });
  const { status, stdout } = await atTerminal(['customers', 'delete', 'acme'], 'y\n');
  expect(stdout).toContain('Delete customer acme with its usage and its 1 key? This cannot be undone. [y/N]');
  expect(status).toBe(0);
  expect(await customerStatus()).toBe(404);
});

it.skipIf(noTerminal).each([
  ['no', 'n\n'],
  ['nothing', '\n'],
  ['something else', 'acme\n'],
  ['the end of input', '\u0004'],
])('changes nothing when the user types %s: status 1', async (_what, typed) => {
  const { status, stdout } = await atTerminal(['customers', 'delete', 'acme'], typed);
  expect(stdout).toContain('not confirmed; nothing was changed');
  expect(status).toBe(1);
  expect(await customerStatus()).toBe(200);
});

it.skipIf(noTerminal)('says whose key it is before it is revoked', async () => {
  const { body } = await callAdmin(gateway, '/admin/v1/customers/acme/keys', { body: { name: 'ci' } });
  const { status, stdout } = await atTerminal(['keys', 'revoke', body.id], 'yes\n');
  expect(stdout).toContain(`Revoke key ${body.id} ("ci") of customer acme?`);
  expect(status).toBe(0);
  const revoked = await callAdmin(gateway, `/admin/v1/keys/${body.id}`);
  expect(revoked.body.revoked_at).not.toBeNull();
});

it.skipIf(noTerminal)('asks before a usage is reset', async () => {
  const { status, stdout } = await atTerminal(['usage', 'reset', 'acme'], 'n\n');
  expect(stdout).toContain('Reset the usage of customer acme?');
  expect(status).toBe(1);
});

it.skipIf(noTerminal)(
  'names the customers that "customers apply --prune" deletes, and changes nothing without a yes',
  async () => {
    const file = await temporaryFile('customers.yaml', 'customers: [{ id: new, plan: starter }]');
    const apply = ['customers', 'apply', '--file', file, '--prune'];
    const { status, stdout } = await atTerminal(apply, 'n\n');
    expect(stdout).toContain('Delete 1 customer with all keys and usage: acme? This cannot be undone. [y/N]');
    expect(status).toBe(1);
    expect((await callAdmin(gateway, '/admin/v1/customers/new')).status).toBe(404);
    expect((await atTerminal(apply, 'y\n')).status).toBe(0);
    expect(await customerStatus()).toBe(404);
  },
);
