/** The command for maintenance. */
import { expect, it } from 'vitest';
import { callAdmin } from '../support/admin.ts';
import { startSystem } from '../support/system.ts';
import { tollgateHereFor } from './support.ts';

it('sets, shows and ends it, and refuses what would be ambiguous', async () => {
  const { gateway } = await startSystem();
  const tollgate = tollgateHereFor(gateway);
  const now = async () => (await callAdmin(gateway, '/admin/v1/maintenance')).body;
  const [one, two] = ['/api/v1/conversations', '/api/v1/conversations/{id}'];
  const set = await tollgate(
    'maintenance',
    'read-only',
    '--route',
    one,
    '--route',
    two,
    '--until',
    '2h',
    '--message',
    'Disks.',
  );
  expect(set).toMatchObject({ status: 0, stdout: expect.stringMatching(/^mode +read_only\n/) });
  expect(await now()).toMatchObject({ mode: 'read_only', routes: [one, two], message: 'Disks.' });
  expect(Date.parse((await now()).until) - Date.now()).toBeGreaterThan(3_600_000);
  expect(JSON.parse((await tollgate('maintenance', '--json')).stdout)).toEqual(await now());
  const shown = new RegExp(`^maintenance +read_only for ${one}, .*\\{id\\} since .*, until `, 'm');
  expect((await tollgate('status')).stdout).toMatch(shown);

  for (const args of [['--route', one], ['--until', '2h'], ['off', '--message', 'a'], ['on']]) {
    expect(await tollgate('maintenance', ...args)).toMatchObject({ status: 2 });
  }
  const unknown = await tollgate('maintenance', 'down', '--route', '/nothing');
  expect(unknown).toMatchObject({ status: 1, stderr: expect.stringContaining('routes: must be paths of routes') });
  expect(await now()).toMatchObject({ mode: 'read_only' });
  expect(await tollgate('maintenance', 'off')).toMatchObject({ status: 0 });
  expect(await now()).toMatchObject({ mode: 'off' });
  expect((await tollgate('status')).stdout).toMatch(/^maintenance +off$/m);
});
