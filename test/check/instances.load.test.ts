/** Checks of several instances, without the store, at the limits of the listener, and at its end. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { PATIENCE } from '../process/workers/support.ts';
import { bearer, createCustomerWithKey } from '../support/admin.ts';
import { readMetric } from '../support/metrics.ts';
import { exchangeRaw } from '../support/raw-http.ts';
import { startRedis } from '../support/redis-server.ts';
import { startSystem } from '../support/system.ts';
import {
  ask,
  CHECK_TOKEN,
  FORMS,
  PATIENT,
  refusalOf,
  startCheckGateway,
  startCheckSystem,
  usedOf,
  verify,
} from './support.ts';

const [extAuthz, forwardAuth, nginx] = FORMS;
test('two instances admit exactly the limit, of 400 parallel checks by every call', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const gateways = [await startCheckGateway(redis.url, PATIENT), await startCheckGateway(redis.url, PATIENT)] as const;
  for (const gateway of gateways) onTestFinished(() => gateway.close());
  const [first] = gateways;
  const key = await createCustomerWithKey(first, { id: 'acme', plan: 'enterprise', requests_per_hour: 100 });
  const answers = await Promise.all(
    Array.from({ length: 400 }, async (_, i) => {
      const gateway = gateways[i % 2] ?? first;
      if (i % 4 === 3) return (await verify(gateway, { key, path: '/v1/open' })).body.allowed;
      const { status } = await (FORMS[i % 4] ?? extAuthz).ask(gateway, 'GET', '/v1/open', bearer(key));
      return status === 200;
    }),
  );
  expect(answers.filter((isAdmitted) => isAdmitted)).toHaveLength(100);
  expect(await usedOf(first)).toBe(100);
});

describe('while Redis is away', () => {
  test.each(['local', 'deny', 'allow'])(
    'known keys follow on_error: %s, and unknown ones are never admitted',
    async (mode) => {
      const redis = await startRedis();
      onTestFinished(() => redis.stop());
      const gateway = await startCheckGateway(redis.url, { store: { timeout_ms: 1000, on_error: mode } });
      onTestFinished(() => gateway.close());
      const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'enterprise', requests_per_hour: 100 });
      expect((await extAuthz.ask(gateway, 'GET', '/v1/open', bearer(key))).status).toBe(200);
      await redis.kill();
      await expect
        .poll(async () => (await fetch(`${gateway.ops}/readyz`)).json(), PATIENCE)
        .toMatchObject({ reasons: ['store_unreachable'] });
      const known = mode === 'deny' ? 503 : 200;
      // A lease from before may admit until it ends.
      await expect
        .poll(async () => (await forwardAuth.ask(gateway, 'GET', '/v1/open', bearer(key))).status, PATIENCE)
        .toBe(known);
      for (const { ask: askForm, codeOf, name } of FORMS) {
        const answer = await askForm(gateway, 'GET', '/v1/open', bearer('never-seen-key'));
        expect([name, answer.status, codeOf(answer)]).toEqual([
          name,
          name === 'nginx' ? 403 : 503,
          'store_unavailable',
        ]);
      }
      expect(await verify(gateway, { key: 'never-seen-key' })).toMatchObject({
        status: 503,
        body: { code: 'store_unavailable' },
      });
      expect((await verify(gateway, { key: 'never-seen-key', dry_run: true })).status).toBe(503);
    },
  );
});

describe('at its limits', () => {
  test('requests in progress are those of both listeners, and overload is told in the form of the call', async () => {
    const { gateway, key } = await startCheckSystem({ config: { limits: { in_flight: 1 } } });
    // Its body never ends, so it stays in progress.
    const { hostname, port } = new URL(gateway.check);
    const slow = connect(Number(port), hostname);
    onTestFinished(() => void slow.destroy());
    slow.write(
      `POST /ext-authz/v1/open HTTP/1.1\r\nHost: a\r\nX-Tollgate-Check-Token: ${CHECK_TOKEN}\r\nContent-Length: 9\r\n\r\nx`,
    );
    await expect.poll(async () => (await extAuthz.ask(gateway, 'GET', '/v1/open', bearer(key))).status).toBe(503);
    const answer = await nginx.ask(gateway, 'GET', '/v1/open', bearer(key));
    expect([answer.status, refusalOf(answer).document.code]).toEqual([403, 'overloaded']);
    expect(await verify(gateway, { key })).toMatchObject({ status: 503, headers: { 'retry-after': '1' } });
    expect(await usedOf(gateway)).toBe(0);
  });

  test('a connection above the limit is told so in the form of the call, and closed', async () => {
    const { gateway, key } = await startCheckSystem({ config: { limits: { connections: 1, in_flight: 8 } } });
    const { hostname, port } = new URL(gateway.check);
    const head = `Host: a\r\nX-Tollgate-Check-Token: ${CHECK_TOKEN}\r\n`;
    const busy = connect(Number(port), hostname);
    onTestFinished(() => void busy.destroy());
    busy.write(`POST /ext-authz/v1/open HTTP/1.1\r\n${head}Content-Length: 9\r\n\r\nx`);
    await expect.poll(() => readMetric(gateway, 'tollgate_inflight_requests')).toEqual({ '': 1 });
    const asked = `GET /nginx HTTP/1.1\r\n${head}Authorization: Bearer ${key}\r\nX-Original-Method: GET\r\nX-Original-URI: /v1/open\r\n\r\n`;
    const { status, headers, closed } = await exchangeRaw(gateway.check, asked);
    expect([status, headers['x-tollgate-refusal'] !== undefined, closed]).toEqual([403, true, true]);
  });

  test('connections to the public listener take none of the check listener', async () => {
    const check = { host: '127.0.0.1', port: 0, token: CHECK_TOKEN };
    const limits = { connections: 1, in_flight: 8 };
    const { gateway, key } = await startSystem({ config: { check, limits }, answer: () => {} });
    const busy = connect(Number(new URL(gateway.public).port), '127.0.0.1');
    onTestFinished(() => void busy.destroy());
    busy.write(`GET /v1/conversations HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`);
    await expect.poll(() => readMetric(gateway, 'tollgate_inflight_requests')).toEqual({ '': 1 });
    expect((await fetch(`${gateway.public}/v1/conversations`)).status).toBe(503);
    const listener = { check: gateway.check ?? '' };
    const answer = await ask(listener, '/ext-authz/v1/conversations', { headers: bearer(key) });
    expect(answer.status).toBe(200);
  });

  test('a body that does not arrive is 408, and headers that are too large are 431', async () => {
    const limits = { request_timeout_ms: 300, headers_timeout_ms: 300, header_bytes: 1024 };
    const { gateway } = await startCheckSystem({ config: { limits } });
    const head = `POST /verify HTTP/1.1\r\nHost: a\r\nX-Tollgate-Check-Token: ${CHECK_TOKEN}\r\n`;
    expect((await exchangeRaw(gateway.check, `${head}Content-Length: 9\r\n\r\nx`)).status).toBe(408);
    expect((await exchangeRaw(gateway.check, `${head}X-Filler: ${'x'.repeat(2000)}\r\n\r\n`)).status).toBe(431);
    const chunks = '1;extension=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\nx\r\n'.repeat(5000);
    const many = await exchangeRaw(gateway.check, `${head}Transfer-Encoding: chunked\r\n\r\n${chunks}`);
    expect([many.status, many.closed]).toEqual([400, true]);
  });
});

test('a stop answers the checks that it has accepted, and closes their connections', async () => {
  const { gateway, key } = await startCheckSystem({ config: { shutdown: { not_ready_ms: 500, drain_ms: 5000 } } });
  const { hostname, port } = new URL(gateway.check);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  const closed = gateway.close();
  await expect.poll(() => gateway.logs.some(({ msg }) => String(msg).startsWith('tollgate stops'))).toBe(true);
  socket.write(
    `GET /ext-authz/v1/open HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nX-Tollgate-Check-Token: ${CHECK_TOKEN}\r\n\r\n`,
  );
  const answer = await text(socket);
  expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  expect(answer).toContain('Connection: close');
  await closed;
});
