/** docs/openapi/check.yaml is what the check listener sends: no header, member or status is missing there. */
import { expect, test } from 'vitest';
import { readContract } from '../openapi/contract.ts';
import { bearer } from '../support/admin.ts';
import { ask, type CheckAnswer, createLimitedKey, startCheckSystem, verify } from './support.ts';

const OWN_HEADER = /^(?:x-|ratelimit|retry-after$|www-authenticate$|allow$|deprecation$|sunset$|link$)/;
const CONTRACT = readContract('check.yaml', (name) => OWN_HEADER.test(name));

test('every kind of response is as the file says', async () => {
  const { gateway, key } = await startCheckSystem({ limit: 4 });
  const limited = await createLimitedKey(gateway);
  const named = { 'X-Forwarded-Method': 'GET', 'X-Forwarded-Uri': '/v1/open' };
  const nginx = { 'X-Original-Method': 'GET', 'X-Original-URI': '/v1/orders' };
  const refused = await ask(gateway, '/nginx', { headers: { ...nginx, ...bearer(limited) } });
  const refusal = { 'X-Tollgate-Refusal': refused.headers['x-tollgate-refusal'] ?? '' };
  const json = { 'Content-Type': 'application/json' };
  const received: [method: string, path: string, status: number, answer: CheckAnswer][] = [
    ['POST', '/verify', 200, await verify(gateway, { key })],
    ['POST', '/verify', 200, await verify(gateway, { key: limited, path: '/v1/orders' })],
    ['POST', '/verify', 200, await verify(gateway, { key: 'unknown-key' })],
    ['POST', '/verify', 200, await verify(gateway, { key, method: 'PUT', path: '/v1/open' })],
    ['POST', '/verify', 200, await verify(gateway, { key: '', path: '/health' })],
    ['POST', '/verify', 200, await verify(gateway, { key: '' })],
    ['POST', '/verify', 400, await ask(gateway, '/verify', { method: 'POST', headers: json, body: '{' })],
    ['POST', '/verify', 401, await ask(gateway, '/verify', { method: 'POST', token: undefined })],
    ['POST', '/verify', 415, await ask(gateway, '/verify', { method: 'POST' })],
    ['POST', '/verify', 422, await verify(gateway, {})],
    ['GET', '/forward-auth', 200, await ask(gateway, '/forward-auth', { headers: { ...named, ...bearer(key) } })],
    ['GET', '/forward-auth', 401, await ask(gateway, '/forward-auth', { headers: named })],
    ['GET', '/forward-auth', 500, await ask(gateway, '/forward-auth', { headers: named, token: 'wrong' })],
    ['GET', '/nginx', 403, refused],
    ['GET', '/nginx', 200, await ask(gateway, '/nginx', { headers: { ...nginx, ...bearer(key) } })],
    ['GET', '/nginx', 500, await ask(gateway, '/nginx', { headers: nginx, token: 'wrong' })],
    ['GET', '/refusal', 403, await ask(gateway, '/refusal', { headers: refusal })],
    ['GET', '/refusal', 503, await ask(gateway, '/refusal')],
    ['GET', '/usage', 200, await ask(gateway, '/usage', { headers: bearer(key) })],
    ['GET', '/usage', 401, await ask(gateway, '/usage')],
    ['POST', '/verify', 200, await verify(gateway, { key })],
    ['POST', '/verify', 200, await verify(gateway, { key })],
  ];
  for (const [method, path, status, { headers, text, ...answer }] of received) {
    const fields = Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]));
    const seen = { status: answer.status, headers: new Headers(fields as [string, string][]), text };
    expect(seen.status, `${method} ${path}`).toBe(status);
    expect(CONTRACT.faultsOf(CONTRACT.operation(method, path), seen)).toEqual([]);
  }
  expect(received.at(-1)?.[3].body.problem.code).toBe('quota_exceeded');
  const operation = CONTRACT.operation('POST', '/verify');
  expect(CONTRACT.acceptsBody(operation, { key, method: 'GET', path: '/', address: '::1', dry_run: true })).toBe(true);
  for (const body of [{}, { key: 1 }, { key, path: 'v1' }, { key, units: 1 }]) {
    expect(CONTRACT.acceptsBody(operation, body)).toBe(false);
    expect((await verify(gateway, body)).status).toBe(422);
  }
});
