/** The code of docs/portal.md does what the page says: it is run as it stands there. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { codeOf, EVERY_SCOPE, exchange } from '../portal/support.ts';
import { callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_TOKEN, EMBEDDED_STORE, startTestGateway, type TestGateway, type TestStore } from '../support/gateway.ts';

const PAGE = readFileSync(new URL('../../docs/portal.md', import.meta.url), 'utf8');
const HAS_PYTHON = spawnSync('python3', ['--version']).status === 0;

let store: TestStore;
let gateway: TestGateway;
beforeAll(async () => {
  store = await EMBEDDED_STORE.start();
  gateway = await startTestGateway({
    storeUrl: store.url,
    upstreamUrl: 'http://127.0.0.1:9',
    config: { portal: { host: '127.0.0.1', port: 0, public_url: 'http://127.0.0.1' } },
  });
  await createCustomerWithKey(gateway, { id: 'demo-starter', plan: 'starter' });
});
afterAll(async () => {
  await gateway.close();
  await store.close();
});

/** Starts a program of the page, with the addresses and the token in its environment. */
function start(language: string, command: string, environment: Record<string, string> = {}) {
  const code = new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(PAGE)?.[1];
  if (code === undefined) throw new Error(`the page has no ${language}`);
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-example-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, language === 'js' ? 'example.mjs' : 'example');
  writeFileSync(file, code);
  const gatewayOf = {
    ADMIN_URL: gateway.admin ?? '',
    PORTAL_URL: gateway.portal ?? '',
    TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN,
  };
  const child = spawn(command, [file], { env: { ...process.env, ...gatewayOf, ...environment } });
  onTestFinished(() => void child.kill());
  return child;
}

describe.each([
  ['js', process.execPath, true],
  ['python', 'python3', HAS_PYTHON],
] as const)('the dashboard in %s', (language, command, isInstalled) => {
  it.runIf(isInstalled)(
    'sends the browser to a link that opens the portal of its customer, with a way back',
    async () => {
      const origin = `http://127.0.0.1:${await freePort()}`;
      start(language, command, { OWN_URL: origin });
      await eventually('the dashboard listens', async () => (await fetch(origin)).ok);
      expect(await (await fetch(origin)).text()).toContain('<form method="post" action="/portal">');
      const redirect = await fetch(`${origin}/portal`, { method: 'POST', redirect: 'manual' });
      expect([redirect.status, redirect.headers.get('cache-control')]).toEqual([303, 'no-store']);
      const link = new URL(redirect.headers.get('location') ?? '');
      expect(`${link.origin}${link.pathname}`).toBe('http://127.0.0.1/portal');
      const opened = await exchange(gateway.portal ?? '', codeOf(link));
      expect(opened.body).toMatchObject({
        customer: 'demo-starter',
        scopes: EVERY_SCOPE,
        user: 'dev@customer.example',
        return_url: origin,
      });
      const [entry] = (await callAdmin(gateway, '/admin/v1/audit?action=portal_session.open')).body.items;
      expect(entry).toMatchObject({ actor: 'portal:demo-starter' });
    },
  );
});

it('the commands of a dashboard of its own read usage, history and keys with a token', async () => {
  const child = start('bash', 'bash');
  let output = '';
  child.stdout.on('data', (chunk) => (output += chunk));
  await once(child, 'close');
  expect(output).toMatch(/"limit":1000/);
  expect(output).toMatch(/"step":"day"/);
  expect(output).toMatch(/"items":\[\{/);
});
