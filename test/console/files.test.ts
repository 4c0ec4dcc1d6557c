import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { PageFile, PageFiles } from '../../src/pages/build-files.ts';
import { lazyPageFiles } from '../../src/pages/files.ts';
import { startAdmin, type TestAdmin } from '../control/admin/support.ts';
import { send } from './support.ts';

const MAX_FIRST_LOAD_BYTES = 120 * 1024;
/** Names of XML namespaces, which nothing requests, and the notice of a library's licence. */
const URLS_THAT_ARE_NAMES = /^http:\/\/www\.w3\.org\/|^https:\/\/github\.com\/leeoniya\/uPlot$/;

let admin: TestAdmin;
let files: PageFiles;
beforeAll(async () => {
  const pageFiles = lazyPageFiles('console');
  admin = await startAdmin({ pageFiles });
  files = await pageFiles();
});
afterAll(() => admin.close());

const textOf = ({ identity }: PageFile) => Buffer.from(identity).toString();
const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(admin.origin + path, { headers: { 'accept-encoding': 'identity', ...headers } });

it('each page is the same document, which refers only to files under the hash of all contents', async () => {
  for (const path of ['/console', '/console/', '/console/customers', '/console/customers/acme']) {
    const response = await get(path);
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    const page = await response.text();
    const references = [...page.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, url = '']) => url);
    expect(references.length).toBeGreaterThan(5);
    for (const url of references) {
      expect(url).toMatch(new RegExp(`^/console/assets/${files.hash}/[\\w-]+\\.(js|css|svg)$`));
      expect((await get(url)).status, url).toBe(200);
    }
  }
});

it('each file is served as its type, immutable, whole or compressed, and not again to a browser that has it', async () => {
  for (const [name, file] of files.assets) {
    const path = `/console/assets/${files.hash}/${name}`;
    const response = await get(path);
    expect(response.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(response.headers.get('content-type')).toBe(file.type);
    expect(response.headers.get('vary')).toBe('Accept-Encoding');
    expect(await response.text()).toBe(textOf(file));
    for (const coding of ['gzip', 'br']) {
      const encoded = await get(path, { 'accept-encoding': coding });
      expect(encoded.headers.get('content-encoding')).toBe(coding);
      expect(await encoded.text(), 'decoded by fetch').toBe(textOf(file));
      const etag = encoded.headers.get('etag') ?? '';
      const again = await send(admin.origin, 'GET', path, { 'accept-encoding': coding, 'if-none-match': etag });
      expect({ status: again.status, body: again.body }).toEqual({ status: 304, body: '' });
    }
  }
});

it('compressed files have the same content', () => {
  for (const file of files.assets.values()) {
    expect(gunzipSync(file.gzip).toString()).toBe(textOf(file));
    expect(brotliDecompressSync(file.br).toString()).toBe(textOf(file));
  }
});

it('another hash or name is 404, which is not stored', async () => {
  for (const path of ['/console/assets/0123456789abcdef/main.js', `/console/assets/${files.hash}/none.js`]) {
    const response = await get(path);
    expect({ status: response.status, cache: response.headers.get('cache-control') }).toEqual({
      status: 404,
      cache: 'no-store',
    });
  }
});

it('page and files together have at most 120 KB on the wire, also without brotli, which browsers offer over https only', () => {
  const sizes = [...files.assets.values()].map(({ gzip }) => gzip.byteLength + 500);
  const total = sizes.reduce((sum, size) => sum + size, files.page.gzip.byteLength + 500);
  expect(total).toBeLessThanOrEqual(MAX_FIRST_LOAD_BYTES);
});

it('no import is left that a browser cannot resolve, and no type or source map', () => {
  const scripts = [...files.assets].filter(([name]) => name.endsWith('.js'));
  expect(scripts.map(([name]) => name)).toEqual(expect.arrayContaining(['main.js', 'preact.js', 'uplot.js']));
  for (const [name, file] of scripts) {
    const text = textOf(file);
    const specifiers = [...text.matchAll(/^(?:import|export)\b[^;'"`]*?\bfrom ?['"]([^'"]+)['"]/gm)].map(
      ([, from]) => from,
    );
    for (const specifier of specifiers) {
      expect(specifier, name).toMatch(/^\.\//);
      expect(files.assets.has(specifier?.slice(2) ?? ''), `${name} imports ${specifier}`).toBe(true);
    }
    expect(text, name).not.toMatch(/sourceMappingURL|\.ts['"]/);
  }
});

it('no file names another origin', () => {
  for (const [name, file] of [['index.html', files.page] as const, ...files.assets]) {
    const text = textOf(file);
    const urls = [...text.matchAll(/(?:https?:|wss?:)\/\/[^\s"'`)]+/g)].map(([url]) => url);
    expect(
      urls.filter((url) => !URLS_THAT_ARE_NAMES.test(url)),
      name,
    ).toEqual([]);
    expect(text, name).not.toMatch(/@import|(?:src|href)="\/\//);
  }
});

it('the client neither writes markup nor evaluates text, and stores nothing but the binding of the session', () => {
  const libraries = new Set(['preact.js', 'preact-hooks.js', 'htm.js', 'htm-preact.js', 'uplot.js']);
  for (const [name, file] of files.assets) {
    if (libraries.has(name)) continue;
    expect(textOf(file), name).not.toMatch(
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|sessionStorage|indexedDB|document\.cookie/i,
    );
    const stored = [...textOf(file).matchAll(/localStorage\.?(\w*)\(?(\w*)/g)].map(([, ...call]) => call);
    for (const [method, key] of stored) expect([method, key]).toEqual([expect.stringMatching(/^\w+Item$/), 'BINDING']);
  }
});
