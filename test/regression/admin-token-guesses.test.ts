/**
 * One address could try 4,600 admin tokens a second, and short tokens were accepted without a word on every address. Then
 * checks were paced, for the valid token too: any web page could slow it down with requests that had no credentials at
 * all. A page whose domain resolves to the admin listener's address (DNS rebinding) could guess from an operator's
 * browser, because any Host was answered.
 */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { isOwnName } from '../../src/control/frame/host-check.ts';
import { load, MINIMAL, problemsOf } from '../config/support.ts';
import { callAdmin } from '../support/admin.ts';
import { ADMIN_TOKEN, startTestGateway } from '../support/gateway.ts';
import { startSystem, type TestSystem } from '../support/system.ts';

async function statusOf(gateway: TestSystem['gateway'], headers: Record<string, string>) {
  const sent = request(`${gateway.admin}/status`, { headers }).end();
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  answer.resume();
  return answer.statusCode;
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

describe('guesses of the admin token', () => {
  it('beyond 30 are 429, and neither they nor requests of web pages refuse or delay the valid token', async () => {
    const { gateway } = await startSystem();
    // As `fetch(…, { mode: 'no-cors' })`, an image or a form of any web page sends them.
    const page = { origin: 'https://attacker.example', 'sec-fetch-site': 'cross-site' };
    for (let i = 0; i < 60; i++) expect(await statusOf(gateway, page)).toBe(401);
    for (let i = 0; i < 30; i++) expect(await statusOf(gateway, bearer(`guess-${i}`))).toBe(401);
    const flood = Array.from({ length: 40 }, (_, i) => statusOf(gateway, bearer(i % 2 === 0 ? 'guess' : ADMIN_TOKEN)));
    expect(await Promise.all(flood)).toEqual(Array.from({ length: 40 }, (_, i) => (i % 2 === 0 ? 429 : 200)));
  });

  it('are audited once for all of them', async () => {
    const { gateway } = await startSystem();
    for (let i = 0; i < 35; i++) await statusOf(gateway, bearer('guess'));
    const refused = async () => {
      const { body } = await callAdmin(gateway, '/admin/v1/audit');
      return body.items.filter(({ action }: { action: string }) => action === 'access.refused');
    };
    await expect.poll(refused).toMatchObject([{ actor: 'unknown', from: '127.0.0.1', customer: null }]);
  });
});

describe('a short admin token', () => {
  const file = (host: string, token: string) => `${MINIMAL}admin: { host: ${host}, token: "${token}" }`;

  it('is refused where other machines may reach the listener', async () => {
    expect(await problemsOf(file('0.0.0.0', '9999'))).toEqual([
      'gateway.yaml:3: admin.token: must have at least 16 characters unless admin.host is a loopback address, because a shorter one can be guessed; use a random one, such as from "openssl rand -hex 32"',
    ]);
    expect(await problemsOf(file('0.0.0.0', 'fifteen-letters'))).toHaveLength(1);
    await expect(load(file('0.0.0.0', 'sixteen--letters'))).resolves.toBeDefined();
    await expect(load(file('127.0.0.1', '9999'))).resolves.toBeDefined();
  });

  it.each([
    ['fifteen-letters', 1],
    ['sixteen--letters', 0],
  ])('%s is warned of %d times', async (token, times) => {
    const gateway = await startTestGateway({
      storeUrl: 'redis://127.0.0.1:9',
      upstreamUrl: 'http://127.0.0.1:9',
      config: { admin: { token } },
    });
    onTestFinished(() => gateway.close());
    const warned = gateway.logs.filter(({ level, msg }) => level === 'warn' && /openssl rand/.test(String(msg)));
    expect(warned).toHaveLength(times);
    expect(JSON.stringify(gateway.logs)).not.toContain(token);
  });
});

describe('the Host of an admin request', () => {
  it('that is not the listener’s is 421 even with the token; allowed_hosts takes names without a restart', async () => {
    const { gateway } = await startSystem({ config: { admin: { allowed_hosts: ['Gateway.Internal'] } } });
    const statusFor = (host: string) => statusOf(gateway, { host, ...bearer(ADMIN_TOKEN) });
    const { port } = new URL(gateway.admin ?? '');
    for (const host of [
      'attacker.example',
      `attacker.example:${port}`,
      'localhost.attacker.example',
      '10.9.8.7',
      'a@localhost',
      '[::1',
    ])
      expect([host, await statusFor(host)]).toEqual([host, 421]);
    for (const host of [
      `127.0.0.1:${port}`,
      'localhost',
      'LOCALHOST:1',
      'localhost.',
      '[::1]:80',
      'gateway.internal',
      'GATEWAY.internal:8082',
    ])
      expect([host, await statusFor(host)]).toEqual([host, 200]);
  });

  it.each([
    // A listener on one address is called by that address.
    ['10.0.0.5', '10.0.0.5', '10.0.0.5', true],
    ['10.0.0.5', '10.0.0.5', 'localhost', false],
    ['10.0.0.5', '10.0.0.5', '10.0.0.6', false],
    ['::1', '::1', '[0:0:0:0:0:0:0:1]:8082', true],
    ['fd00::5', 'fd00::5', '[fd00:0::5]', true],
    ['gateway-1', '10.0.0.5', 'gateway-1:8082', true],
    // One on all addresses may be behind a port mapping or a Service, which translate addresses.
    ['0.0.0.0', '172.17.0.2', 'localhost:8082', true],
    ['0.0.0.0', '172.17.0.2', '192.168.1.7', true],
    ['::', '::ffff:172.17.0.2', '172.17.0.2', true],
    ['0.0.0.0', '172.17.0.2', 'attacker.example', false],
  ])('with admin.host %s, arrived at %s, Host %s: %s', (host, localAddress, called, isOwn) => {
    expect(isOwnName(called, localAddress, { host, allowedHosts: [] })).toBe(isOwn);
  });
});
