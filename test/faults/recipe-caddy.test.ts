/** Caddy with the block of docs/recipes/caddy.md, and certificates of its own CA in place of ACME. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { expect, inject, it, onTestFinished } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { blockOf, configOf, temporaryFolder } from '../docs/recipes/support.ts';
import { bearer } from '../support/admin.ts';
import { CHILD_ENVIRONMENT } from '../support/child-environment.ts';
import { eventually } from '../support/eventually.ts';
import { startSystem } from '../support/system.ts';

const NAME = 'api.example.com';
/** Another loopback address than the one that the gateway trusts. */
const CLIENT = '127.0.0.2';

/** Runs Caddy with the block on a free port. Resolves to a client that verifies the certificate by Caddy's own CA. */
async function startCaddy(gatewayUrl: string) {
  const folder = temporaryFolder();
  const port = await freePort();
  const block = blockOf('caddy', 'caddyfile', NAME)
    .replace(`${NAME} {`, `https://${NAME}:${port} {\n\ttls internal`)
    .replace('127.0.0.1:8080', new URL(gatewayUrl).host);
  const forTests = 'admin off\n\tauto_https disable_redirects\n\tskip_install_trust';
  writeFileSync(join(folder, 'Caddyfile'), `{\n\t${forTests}\n\tstorage file_system ${folder}\n}\n${block}`);
  const caddy = spawn(inject('caddy'), ['run'], { cwd: folder, env: { ...CHILD_ENVIRONMENT, HOME: folder } });
  onTestFinished(() => void caddy.kill());
  let log = '';
  caddy.stderr.on('data', (chunk) => (log += chunk));
  const root = join(folder, 'pki/authorities/local/root.crt');
  await eventually('Caddy serves', () => existsSync(root) && log.includes('certificate obtained successfully'));
  return (headers: Record<string, string>) =>
    new Promise<{ status: number | undefined; body: string }>((resolve, reject) => {
      const tls = { ca: readFileSync(root), servername: NAME };
      const to = { host: '127.0.0.1', port, localAddress: CLIENT, path: '/v1/conversations' };
      const sent = request({ ...to, ...tls, agent: false, headers: { Host: NAME, ...headers } }, (response) => {
        buffer(response).then((body) => resolve({ status: response.statusCode, body: body.toString() }), reject);
      });
      sent.on('error', reject).end();
    });
}

const hasCaddy = inject('caddy') !== '' && process.platform === 'linux';

it.runIf(hasCaddy)(
  'gateway and backend get the address of the client from Caddy, and no other one that the client claims',
  async () => {
    const { gateway, backend, key } = await startSystem({ config: configOf('caddy') });
    const get = await startCaddy(gateway.public);
    const forged = {
      'X-Forwarded-For': '203.0.113.9',
      'X-Forwarded-Proto': 'http',
      'X-Forwarded-Host': 'attacker.example',
      Forwarded: 'for=203.0.113.9',
    };
    expect(await get({ ...bearer(key), ...forged })).toMatchObject({ status: 200 });
    expect(backend.seen[0]?.headers).toMatchObject({
      'x-forwarded-for': `${CLIENT}, 127.0.0.1`,
      'x-forwarded-proto': 'https',
      'x-forwarded-host': NAME,
    });
    expect(JSON.stringify(backend.seen)).not.toMatch(/203\.0\.113\.9|attacker/);
    await expect
      .poll(() => gateway.logs.findLast(({ msg }) => msg === 'request'))
      .toMatchObject({ status: 200, client: CLIENT });
    const refused = await get(forged);
    expect([refused.status, JSON.parse(refused.body).code]).toEqual([401, 'missing_key']);
  },
);

it.runIf(hasCaddy)('Caddy accepts the blocks of the other listeners', () => {
  const file = join(temporaryFolder(), 'Caddyfile');
  writeFileSync(file, blockOf('caddy', 'caddyfile', 'keys.example.com'));
  const { stdout } = spawnSync(inject('caddy'), ['adapt', '--config', file], { encoding: 'utf8' });
  expect(stdout.match(/"dial":"[^"]+"/g)).toEqual(['"dial":"127.0.0.1:3001"', '"dial":"127.0.0.1:8083"']);
});

it('the gateway keeps idle connections for longer than Caddy does', () => {
  const caddysMs = 120_000;
  expect(configOf('caddy').listen?.keep_alive_timeout_ms).toBeGreaterThan(caddysMs);
});
