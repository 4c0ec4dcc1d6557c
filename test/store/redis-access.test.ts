/** How the store lets itself in: certificates, users, and the passwords of sentinels; nothing of it reaches a message. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { openStore, type StoreSettings } from '../../src/store/open-store.ts';
import { createCertificate } from '../support/certificates.ts';
import { startSentinelSystem } from '../support/redis-sentinel.ts';
import { freePort, startRedis } from '../support/redis-server.ts';
import { RecordingObserver, request } from './contract.ts';

const CA = createCertificate({ name: 'authority.test' });
const SERVER = createCertificate({ name: 'localhost', issuer: CA });
const CLIENT = createCertificate({ name: 'gateway.test', issuer: CA });
const STRANGER = createCertificate({ name: 'authority.test' });

async function open(settings: Partial<StoreSettings> & { readonly url: string }) {
  const observer = new RecordingObserver();
  const surroundings = { clock: systemClock, observer, warn: () => undefined };
  const store = await openStore({ keyPrefix: 'test', timeoutMs: 1000, ...settings }, surroundings);
  onTestFinished(() => store.close());
  return store;
}

/** A server with TLS besides its port for the tests. */
async function startWithTls(authClients: 'yes' | 'no') {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-tls-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = (name: string, content: string) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const port = await freePort();
  const files = {
    '--tls-cert-file': file('cert.pem', SERVER.cert),
    '--tls-key-file': file('key.pem', SERVER.key),
    '--tls-ca-cert-file': file('ca.pem', CA.cert),
  };
  const args = ['--tls-port', String(port), '--tls-auth-clients', authClients, ...Object.entries(files).flat()];
  const redis = await startRedis({ args });
  onTestFinished(() => redis.stop());
  return { redis, port };
}

test.each(['127.0.0.1', 'localhost'])(
  'rediss:// trusts a server at %s that its own authority vouches for',
  async (host) => {
    const { port } = await startWithTls('no');
    const store = await open({ url: `rediss://${host}:${port}`, tls: { ca: CA.cert } });
    expect(await store.windows.reserve(request())).toMatchObject({ granted: 1 });
    expect(store.status()).toMatchObject({ up: true, invalidation: 'connected' });
  },
);

test.each([
  ['nobody that is known vouches for', {}],
  ['another authority vouches for', { ca: STRANGER.cert }],
])('rediss:// does not speak to a server that %s', async (_what, tls) => {
  const { redis, port } = await startWithTls('no');
  const store = await open({ url: `rediss://:some-password@127.0.0.1:${port}`, tls });
  await expect(store.windows.reserve(request())).rejects.toThrow(/certificate/i);
  expect(store.status()).toMatchObject({ up: false, reached: false });
  expect(String(await redis.command('INFO', 'commandstats'))).not.toContain('cmdstat_auth');
});

test('a server that asks for a certificate gets the one of the configuration', async () => {
  const { port } = await startWithTls('yes');
  const url = `rediss://127.0.0.1:${port}`;
  const store = await open({ url, tls: { ca: CA.cert, cert: CLIENT.cert, key: CLIENT.key } });
  expect(await store.windows.reserve(request())).toMatchObject({ granted: 1 });
  const without = await open({ url, tls: { ca: CA.cert } });
  expect(without.status()).toMatchObject({ up: false, reached: false });
});

test('a user and a password of odd characters are sent as they are meant', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const password = 'p@ss:/wörd%?#';
  await redis.command('ACL', 'SETUSER', 'gate/way', 'on', `>${password}`, '~*', '&*', '+@all');
  const user = `${encodeURIComponent('gate/way')}:${encodeURIComponent(password)}`;
  const store = await open({ url: `redis://${user}@127.0.0.1:${redis.port}/2` });
  expect(await store.windows.reserve(request())).toMatchObject({ granted: 1 });
  expect(String(await redis.command('CLIENT', 'LIST'))).toMatch(/name=tollgate-windows .*db=2 .*user=gate\/way/);
});

test('sentinels that want a password get theirs, Redis gets its own, and no message has either', async () => {
  const system = await startSentinelSystem({
    args: ['--requirepass', 'of-redis', '--masterauth', 'of-redis'],
    password: 'of-redis',
    sentinelPassword: 'of-sentinel',
    sentinelLines: [
      'user gateway on >of-gateway resetchannels -@all +ping +sentinel|get-master-addr-by-name +sentinel|sentinels',
    ],
  });
  onTestFinished(() => system.stop());
  const url = system.url.replace('//', '//:of-redis@');
  const store = await open({ url, sentinel: { password: 'of-sentinel' } });
  expect(await store.windows.reserve(request())).toMatchObject({ granted: 1 });
  const asUser = await open({ url, sentinel: { username: 'gateway', password: 'of-gateway' } });
  expect(await asUser.windows.reserve(request())).toMatchObject({ granted: 1 });

  const wrong = await open({ url, sentinel: { password: 'wrong-password' } });
  const error: unknown = await wrong.windows.reserve(request()).catch((reason: unknown) => reason);
  expect(String(error)).toMatch(/not connected to Redis: .*entinel/);
  expect(inspect([error, wrong.status()], { depth: 10, showHidden: true })).not.toMatch(/of-redis|wrong-password/);
});
