/**
 * A reload of the config forgot the refused credentials of the admin and the portal listener and the requests of the
 * portal's customers: after it, guesses got 401 again instead of 429, and a flood of reads a fresh second.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { send } from '../console/support.ts';
import { takeOver } from '../control/reload/support.ts';
import { exchange, overEachStore } from '../portal/support.ts';

overEachStore('after a reload', (system) => {
  it('guesses are still refused as too many', async () => {
    const { gateway } = system();
    const guess = {
      admin: () => send(gateway.admin ?? '', 'GET', '/admin/v1/status', { authorization: 'Bearer wrong' }),
      portal: () => exchange(gateway.portal, 'wrong'),
    };
    for (const each of [guess.admin, guess.portal]) {
      for (let failures = 0; failures < 30; failures++) expect((await each()).status).toBe(401);
    }
    const config = parse(await readFile(gateway.file, 'utf8'));
    await writeFile(gateway.file, stringify({ ...config, portal: { ...config.portal, title: 'Another title' } }));
    const { result, problems } = await gateway.reload('signal');
    expect(problems).toEqual([]);
    expect(result === 'unchanged' ? await takeOver(gateway) : result).toBe('applied');
    const settings = await send(gateway.portal, 'GET', '/portal/settings');
    expect(settings.body.title).toBe('Another title');
    expect([(await guess.admin()).status, (await guess.portal()).status]).toEqual([429, 429]);
  });
});
