/** `config/any-backend.yaml`, and routes beyond the default ones, in front of real backends. */
import { readFile } from 'node:fs/promises';
import { expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { createConversations } from '../../demo/sample-backend/conversations.ts';
import { startSampleBackend } from '../../demo/sample-backend/sample-backend.ts';
import { rewrite, takeOver } from '../control/reload/support.ts';
import { bearer, callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { EMBEDDED_STORE, startTestGateway } from '../support/gateway.ts';
import { readMetric } from '../support/metrics.ts';
import { startSystem } from '../support/system.ts';

const FILE = new URL('../../config/any-backend.yaml', import.meta.url);
const { routes, aliases, usage_path, plans } = parse(await readFile(FILE, 'utf8'));
const ANY_BACKEND = { routes, aliases, usage_path, plans };

it('any-backend.yaml forwards each of its methods on any path, as sent, and refuses all others', async () => {
  const { gateway, backend, key } = await startSystem({ config: ANY_BACKEND });
  const paths = ['/', '/x', '/a/b%20c/', '/api/v1/usage', '/v1/conversations/1?q=%2F', '/_tollgate/usage/x'];
  const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
  for (const method of methods) {
    for (const path of paths) {
      const answer = await fetch(gateway.public + path, { method, headers: bearer(key) });
      expect(answer.status, `${method} ${path}`).toBe(200);
    }
  }
  expect(backend.seen.map(({ method, url }) => `${method} ${url}`)).toEqual(
    methods.flatMap((method) => paths.map((path) => `${method} ${path}`)),
  );

  const refused = await fetch(`${gateway.public}/x`, { method: 'PROPFIND', headers: bearer(key) });
  expect(refused.status).toBe(405);
  expect(refused.headers.get('allow')).toBe(methods.join(', '));
  expect(await refused.json()).toMatchObject({
    detail: 'This path supports GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS.',
  });
  for (const path of ['//', '/a//b', '/a/b;c', '/a/%2fb', `/a/${'b'.repeat(513)}`]) {
    const answer = await fetch(gateway.public + path, { method: 'DELETE', headers: bearer(key) });
    expect([400, 404], path).toContain(answer.status);
  }
  const usage = await fetch(`${gateway.public}/_tollgate/usage`, { headers: bearer(key) });
  expect(await usage.json()).toMatchObject({ customer: 'acme', used: methods.length * paths.length });
  expect((await fetch(`${gateway.public}/_tollgate/usage/`, { method: 'DELETE', headers: bearer(key) })).status).toBe(
    404,
  );
  expect(backend.seen).toHaveLength(methods.length * paths.length);
  const counted = Object.keys(await readMetric(gateway, 'tollgate_http_requests_total'));
  expect(counted.filter((labels) => /method="PROPFIND"/.test(labels))).toEqual([]);
  expect(counted.filter((labels) => /method="PATCH",code="200"/.test(labels))).toHaveLength(2);
});

it('a reload applies methods, catch-all and body limit of routes, and the admin API shows them', async () => {
  const { gateway, backend, key } = await startSystem();
  const remove = () => fetch(`${gateway.public}/v1/things/5/parts`, { method: 'DELETE', headers: bearer(key) });
  expect((await remove()).status).toBe(404);
  const things = { path: '/api/v1/things/{rest...}', methods: ['DELETE'], max_body_bytes: 0 };
  await rewrite(gateway, { routes: [things], limits: { body_bytes: 7, body_stall_timeout_ms: 5000 } });
  expect(await takeOver(gateway)).toBe('applied');
  expect((await remove()).status).toBe(200);
  expect(backend.seen.map(({ method, url }) => `${method} ${url}`)).toEqual(['DELETE /api/v1/things/5/parts']);
  const { body } = await callAdmin(gateway, '/admin/v1/config');
  expect(body.routes).toMatchObject([{ ...things, scope: null, key: 'required', upstream: 'default' }]);
  expect(body.limits).toMatchObject({ body_bytes: 7, body_stall_timeout_ms: 5000 });
});

it('the sample backend gets messages only where a route for them is configured', async () => {
  const sample = await startSampleBackend({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => sample.close());
  const store = await EMBEDDED_STORE.start();
  onTestFinished(() => store.close());
  const gateway = await startTestGateway({ storeUrl: store.url, upstreamUrl: sample.url.origin });
  onTestFinished(() => gateway.close());
  const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'starter' });
  const [conversation] = createConversations();
  const url = `${gateway.public}/v1/conversations/${conversation?.id}/messages`;
  const headers = { ...bearer(key), 'Content-Type': 'application/json' };
  const post = (text?: string) => fetch(url, { method: 'POST', headers, body: JSON.stringify({ text }) });
  const refused = await post('Thank you');
  expect(refused.status).toBe(404);
  expect(await refused.json()).toHaveProperty('code', 'not_found');

  const messages = { path: '/api/v1/conversations/{id}/messages', methods: ['POST'] };
  await rewrite(gateway, { routes: [messages] });
  expect(await takeOver(gateway)).toBe('applied');
  const sent = await post('Thank you');
  expect(sent.status).toBe(201);
  expect(await sent.json()).toMatchObject({ text: 'Thank you' });
  const invalid = await post();
  expect(invalid.status).toBe(400);
  expect(await invalid.json()).toHaveProperty('error.code', 'INVALID_MESSAGE');
});
