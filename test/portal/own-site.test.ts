/** The portal as a part of the operator's site: its logo, the page at the bare address, and what leads back. */
import { mkdir, rename, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SECURITY_HEADERS } from '../../src/http/problems/security-headers.ts';
import { send } from '../console/support.ts';
import { rewrite, takeOver } from '../control/reload/support.ts';
import { startBackend } from '../support/backend.ts';
import { EMBEDDED_STORE } from '../support/gateway.ts';
import { type PortalGateway, startPortalGateway } from './support.ts';

const POLICY = SECURITY_HEADERS.get('Content-Security-Policy') ?? '';
const PNG = Buffer.from('89504e470d0a1a0a0000000d49484452ff00', 'hex');
const HOSTILE = `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(document.domain)</script></svg>`;
const TITLE = `<b>"A" & 'B'</b>`;
const HOME = `https://home.example/a"><script>alert(1)</script>?x='<y>'&z#/account`;

let gateway: PortalGateway;
const opened: { close(): Promise<unknown> }[] = [];
beforeAll(async () => {
  const [store, backend] = [await EMBEDDED_STORE.start(), await startBackend()];
  gateway = await startPortalGateway(store.url, backend.url);
  opened.push(store, backend, gateway);
});
afterAll(async () => {
  for (const each of opened.reverse()) await each.close();
});

/** Applies further settings of the portal. */
async function configure(settings: object): Promise<string> {
  await rewrite(gateway, { portal: { ...gateway.sections.portal, ...settings } });
  return takeOver(gateway);
}
const settings = async () => (await send(gateway.portal, 'GET', '/portal/settings')).body;
const fetchLogo = () => fetch(`${gateway.portal}/portal/logo`);

describe('a logo in a folder as Kubernetes mounts one, with links that are swapped', () => {
  const folder = () => join(dirname(gateway.file), 'branding');
  let version = 0;
  async function put(content: string | Buffer): Promise<void> {
    const name = `..${++version}`;
    await mkdir(join(folder(), name), { recursive: true });
    await writeFile(join(folder(), name, 'logo.svg'), content);
    await symlink(name, join(folder(), '..next'));
    await rename(join(folder(), '..next'), join(folder(), '..data'));
  }

  it('is served to everyone byte for byte, and cannot run its script, whatever opens it', async () => {
    await put(HOSTILE);
    await symlink('..data/logo.svg', join(folder(), 'logo.svg'));
    expect(await configure({ logo_file: 'branding/logo.svg' })).toBe('applied');
    expect((await settings()).logo_url).toBe('/portal/logo');
    const response = await fetchLogo();
    expect(response.status).toBe(200);
    expect(await response.text()).toBe(HOSTILE);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'image/svg+xml',
      'content-security-policy': `${POLICY}; sandbox`,
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-cache',
    });
    const headers = { 'if-none-match': response.headers.get('etag') ?? '' };
    const cached = await send(gateway.portal, 'GET', '/portal/logo', headers);
    expect([cached.status, cached.headers['content-security-policy']]).toEqual([304, `${POLICY}; sandbox`]);
    expect((await send(gateway.portal, 'POST', '/portal/logo')).headers.allow).toBe('GET, HEAD');
    expect((await send(gateway.portal, 'GET', '/portal/logo', { host: 'other.example' })).status).toBe(421);
  });

  it('is another one after a swap of the links, without a change of the config file', async () => {
    const before = (await fetchLogo()).headers.get('etag');
    await put(PNG);
    const reloaded = await gateway.reload('signal');
    // The watch may have been first.
    expect(['applied', 'unchanged']).toContain(reloaded.result);
    const response = await fetchLogo();
    expect(Buffer.from(await response.arrayBuffer()).equals(PNG)).toBe(true);
    expect(response.headers.get('content-type')).toBe('image/png');
    expect(response.headers.get('etag')).not.toBe(before);
  });

  it('stays the former one while the file is no image or too large, which the reload names with its line', async () => {
    for (const [content, problem] of [
      ['<html>', 'must name a PNG, or an SVG'],
      [Buffer.concat([PNG], 65_537), 'the file is larger than 64 KiB'],
    ] as const) {
      await put(content);
      const { result, problems } = await gateway.reload('signal');
      expect([result, problems]).toEqual([
        'invalid',
        [expect.stringMatching(new RegExp(`gateway.yaml:\\d+: portal.logo_file: ${problem}`))],
      ]);
      expect((await fetchLogo()).headers.get('content-type')).toBe('image/png');
    }
    await put(PNG);
  });

  it('is gone when the setting is', async () => {
    expect(await configure({})).toBe('applied');
    expect((await settings()).logo_url).toBeNull();
    expect((await fetchLogo()).status).toBe(404);
  });
});

describe('the bare address', () => {
  it('is a page that leads to home_url, without a session and without JavaScript; nothing in it becomes markup', async () => {
    expect(await configure({ title: TITLE, home_url: HOME })).toBe('applied');
    const { status, headers, body } = await send(gateway.portal, 'GET', '/');
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': POLICY,
      'cache-control': 'no-store',
    });
    const [, href = ''] = /<a href="([^"]*)">Go to home\.example<\/a>/.exec(body) ?? [];
    const text = (html: string) => html.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)));
    expect(text(href)).toBe(HOME);
    const [, heading = ''] = /<h1>(.*?)<\/h1>/.exec(body) ?? [];
    expect(text(heading)).toBe(TITLE);
    expect(body).not.toMatch(/<b>|<script>|'</);
    expect(await settings()).toMatchObject({ title: TITLE, home_url: HOME });
  });

  it('is a page without home_url too, has no other method, and answers to the host of the portal alone', async () => {
    await configure({});
    const page = await send(gateway.portal, 'GET', '/?from=bookmark');
    expect([page.status, page.body.includes('<a ')]).toEqual([200, false]);
    expect((await send(gateway.portal, 'HEAD', '/')).status).toBe(200);
    expect((await send(gateway.portal, 'POST', '/')).status).toBe(405);
    expect((await send(gateway.portal, 'GET', '/', { host: 'other.example' })).status).toBe(421);
    expect((await send(gateway.portal, 'GET', '/other')).status).toBe(404);
  });
});
