/** How the store lets itself in: certificates, users, and the passwords of sentinels; nothing of it reaches a message. */
import { inspect } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { openStore, type StoreSettings } from '../../src/store/open/open-store.ts';
import { createCertificate } from '../support/certificates.ts';
import { startRedisCluster } from '../support/redis-cluster.ts';
import { startSentinelSystem } from '../support/redis-sentinel.ts';
import { startRedis } from '../support/redis-server.ts';
import { silent } from '../support/silent.ts';
import { RecordingObserver, request, used } from './contract.ts';

const HEALS = { timeout: 30_000, interval: 50 };
const CA = createCertificate({ name: 'authority.test' });
const SERVER = createCertificate({ name: 'localhost', issuer: CA });
const CLIENT = createCertificate({ name: 'gateway.test', issuer: CA });
const SECURE = { cert: SERVER.cert, key: SERVER.key, ca: CA.cert };
const STRANGER = createCertificate({ name: 'authority.test' });

async function open(settings: Partial<StoreSettings> & { readonly url: string }) {
  const observer = new RecordingObserver();
  const surroundings = { ...silent, observer };
  const store = await openStore({ keyPrefix: 'test', timeoutMs: 1000, ...settings }, surroundings);
  onTestFinished(() => store.close());
  return store;
}

async function startWithTls(authClients: 'yes' | 'no') {
  const redis = await startRedis({ tls: SECURE, args: ['--tls-auth-clients', authClients] });
  onTestFinished(() => redis.stop());
  return redis;
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
  const redis = await startWithTls('no');
  const store = await open({ url: redis.url.replace('//', '//:some-password@'), tls });
  await expect(store.windows.reserve(request())).rejects.toThrow(/certificate/i);
  expect(store.status()).toMatchObject({ up: false, reached: false });
  expect(String(await redis.command('INFO', 'commandstats'))).not.toContain('cmdstat_auth');
});

test('a server that asks for a certificate gets the one of the configuration', async () => {
  const { url } = await startWithTls('yes');
  const store = await open({ url, tls: { ca: CA.cert, cert: CLIENT.cert, key: CLIENT.key } });
  expect(await store.windows.reserve(request())).toMatchObject({ granted: 1 });
  const without = await open({ url, tls: { ca: CA.cert } });
  expect(without.status()).toMatchObject({ up: false, reached: false });
});

test('rediss+sentinel:// speaks TLS to the sentinels and to the master, also to a new one', async () => {
  const system = await startSentinelSystem({ tls: SECURE });
  onTestFinished(() => system.stop());
  const store = await open({ url: system.url, tls: { ca: CA.cert } });
  expect(await store.windows.reserve(request())).toMatchObject({ granted: 1 });
  expect(store.status()).toMatchObject({ up: true, invalidation: 'connected' });
  await system.failover();
  await expect.poll(() => used(store), HEALS).toBe(1);

  const stranger = await open({ url: system.url, tls: { ca: STRANGER.cert } });
  await expect(stranger.windows.reserve(request())).rejects.toThrow('not connected to Redis');
});

test('rediss+cluster:// speaks TLS to every master', async () => {
  const cluster = await startRedisCluster({ tls: SECURE });
  onTestFinished(() => cluster.stop());
  const store = await open({ url: cluster.url, tls: { ca: CA.cert } });
  for (const customer of ['acme', 'globex', 'initech', 'umbrella']) {
    expect(await store.windows.reserve(request({ customer }))).toMatchObject({ granted: 1 });
  }
  expect(store.status()).toMatchObject({ up: true, invalidation: 'connected' });
  for (const clients of await cluster.onMasters('CLIENT', 'LIST')) expect(clients).toContain('name=tollgate-windows');

  const stranger = await open({ url: cluster.url, tls: { ca: STRANGER.cert } });
  await expect(stranger.windows.reserve(request())).rejects.toThrow(/not connected to Redis: .*certificate/);
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
