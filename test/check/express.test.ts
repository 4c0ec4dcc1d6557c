/** The middleware for Express in docs/check.md. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import express, { type RequestHandler } from 'express';
import { expect, onTestFinished, test, vi } from 'vitest';
import { bearer } from '../support/admin.ts';
import { CHECK_TOKEN, createLimitedKey, startCheckSystem } from './support.ts';

const PAGE = readFileSync(new URL('../../docs/check.md', import.meta.url), 'utf8');

test('has at most 15 lines, admits by the key, sends the refusal, and fails closed', async () => {
  const [, block = ''] = /^```js\n([\s\S]*?)^```/m.exec(PAGE) ?? [];
  expect(block.trim().split('\n').length).toBeLessThanOrEqual(15);
  const { gateway, key } = await startCheckSystem({ limit: 2 });
  const limited = await createLimitedKey(gateway);
  vi.stubEnv('TOLLGATE_CHECK_TOKEN', CHECK_TOKEN);
  onTestFinished(() => void vi.unstubAllEnvs());
  const code = block.replace('http://127.0.0.1:8084', gateway.check);
  const { tollgate } = (await import(`data:text/javascript,${encodeURIComponent(code)}`)) as {
    tollgate: RequestHandler;
  };
  const app = express();
  app.use(tollgate);
  app.use((req, res) => {
    res.json({ customer: (req as unknown as { tollgate: { customer: string } }).tollgate.customer });
  });
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const get = async (path: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`, { headers });
    return { status: response.status, headers: response.headers, body: await response.json() };
  };
  expect(await get('/v1/open/1?q=1', bearer(key))).toMatchObject({ status: 200, body: { customer: 'acme' } });
  const missing = await get('/v1/open');
  expect(missing).toMatchObject({ status: 401, body: { code: 'missing_key' } });
  expect(missing.headers.get('www-authenticate')).toBe('Bearer realm="api"');
  expect(await get('/v1/orders/1', bearer(limited))).toMatchObject({
    status: 403,
    body: { code: 'insufficient_scope' },
  });
  expect((await get('/v1/%6frders/1', bearer(limited))).body).toMatchObject({ code: 'bad_request' });
  await get('/v1/open', bearer(key));
  const used = await get('/v1/open', bearer(key));
  expect(used).toMatchObject({ status: 429, body: { code: 'quota_exceeded' } });
  expect(used.headers.get('retry-after')).toMatch(/^\d+$/);
  vi.stubEnv('TOLLGATE_CHECK_TOKEN', 'wrong');
  const misconfigured = await get('/v1/open', bearer(key));
  expect(misconfigured.status).toBe(503);
  expect(misconfigured.headers.has('www-authenticate')).toBe(false);
  vi.stubEnv('TOLLGATE_CHECK_TOKEN', CHECK_TOKEN);
  await gateway.close();
  expect((await get('/v1/open', bearer(key))).status).toBe(503);
});
