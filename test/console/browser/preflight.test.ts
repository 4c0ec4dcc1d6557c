/** Pages of other origins that call the public API: the backend decides about CORS, on routes without a key. */
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { bearer } from '../../support/admin.ts';
import { startSystem } from '../../support/system.ts';
import { startBrowser } from './support/browser.ts';

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser.close());

const ROUTES = [
  { path: '/things/{id}', methods: ['GET', 'PUT'] },
  { path: '/things/{id}', methods: ['OPTIONS'], key: 'none' },
  { path: '/open/{id}', methods: ['GET', 'PUT', 'OPTIONS'], key: 'none' },
  { path: '/without-options/{id}', methods: ['PUT'] },
  { path: '/keyed-options/{id}', methods: ['PUT', 'OPTIONS'] },
];

async function startServer(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A gateway whose backend lets the pages of one origin call it, and a browser that opens pages. */
async function startPages() {
  let allowed = '';
  const config = { routes: ROUTES as never, aliases: {}, usage_path: '/usage' as never };
  const { gateway, backend, key } = await startSystem({
    config,
    answer(req, res) {
      if (req.headers.origin === allowed) {
        res.setHeader('Access-Control-Allow-Origin', allowed).setHeader('Vary', 'Origin');
        res.setHeader('Access-Control-Allow-Methods', 'GET, PUT').setHeader('Access-Control-Allow-Headers', 'X-Own');
      }
      if (req.method === 'OPTIONS') res.writeHead(204).end();
      else res.end(`"${req.method} ${req.url}"`);
    },
  });
  /** Serves a page, and calls the API with the key for it. */
  const site: RequestListener = async (req, res) => {
    if (req.url === '/') return res.setHeader('Content-Type', 'text/html').end('<!doctype html><title>page</title>');
    if (!req.url?.startsWith('/things/')) return res.writeHead(204).end(); // the icon
    const answer = await fetch(gateway.public + req.url, { headers: bearer(key) });
    return res.writeHead(answer.status).end(await answer.text());
  };
  const [ofCustomer, ofStranger] = [await startServer(site), await startServer(site)];
  allowed = ofCustomer;

  /** Calls a URL from a page of `origin`. Returns the body, or `blocked` if the browser does not let the page have it. */
  async function callFrom(origin: string, url: string, method: string): Promise<string> {
    const page = await browser.newPage();
    try {
      await page.goto(origin);
      const call = `fetch('${url}', { method: '${method}', headers: { 'X-Own': '1' } }).then((answer) => answer.text())`;
      return String(await page.evaluate(`${call}.catch(() => 'blocked')`));
    } finally {
      await page.close();
    }
  }
  return { gateway, backend, ofCustomer, ofStranger, callFrom };
}

it('a page calls a route without a key after a preflight request, if the backend allows its origin', async () => {
  const { gateway, backend, ofCustomer, ofStranger, callFrom } = await startPages();
  expect(await callFrom(ofCustomer, `${gateway.public}/open/1`, 'PUT')).toBe('"PUT /open/1"');
  expect(backend.seen.map(({ method, url }) => `${method} ${url}`)).toEqual(['OPTIONS /open/1', 'PUT /open/1']);
  expect(backend.seen[0]?.headers).toMatchObject({
    origin: ofCustomer,
    'access-control-request-method': 'PUT',
    'access-control-request-headers': 'x-own',
  });
  expect(await callFrom(ofStranger, `${gateway.public}/open/2`, 'PUT')).toBe('blocked');
  expect(backend.seen.slice(2).map(({ method, url }) => `${method} ${url}`)).toEqual(['OPTIONS /open/2']);
});

it('a page without the key passes the preflight request, but only its own server gets the response', async () => {
  const { gateway, backend, ofCustomer, callFrom } = await startPages();
  expect(await callFrom(ofCustomer, `${gateway.public}/things/1`, 'GET')).toBe('blocked');
  expect(backend.seen.map(({ method }) => method)).toEqual(['OPTIONS']);
  await expect
    .poll(() => gateway.logs.filter(({ msg }) => msg === 'request').map(({ method, status }) => [method, status]))
    .toEqual([
      ['OPTIONS', 204],
      ['GET', 401],
    ]);
  expect(await callFrom(ofCustomer, '/things/1', 'GET')).toBe('"GET /things/1"');
});

it.each([
  ['/without-options/1', 405, 'method_not_allowed'],
  ['/keyed-options/1', 401, 'missing_key'],
])(
  'the preflight request to %s, which has no OPTIONS without a key, gets %i, and the request is never sent',
  async (path, status, code) => {
    const { gateway, backend, ofCustomer, callFrom } = await startPages();
    expect(await callFrom(ofCustomer, gateway.public + path, 'PUT')).toBe('blocked');
    await expect
      .poll(() => gateway.logs.filter(({ msg }) => msg === 'request'))
      .toEqual([expect.objectContaining({ method: 'OPTIONS', status, code })]);
    expect(backend.seen).toEqual([]);
  },
);
