/**
 * Backends under a base path. If the gateway normalised the joined path, or let the base path of one server be combined
 * with the request path in another way than by concatenation, a request could leave the base path and reach another
 * application of the same server.
 */
import { decodeJwt } from 'jose';
import { describe, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { temporaryFile } from '../cli/support.ts';
import { bearer, createCustomerWithKey } from '../support/admin.ts';
import { startBackend } from '../support/backend.ts';
import { EMBEDDED_STORE, startTestGateway } from '../support/gateway.ts';
import { readMetric } from '../support/metrics.ts';
import { createPemPair } from './identity/support.ts';
import { call } from './support/caller.ts';
import { startGateway } from './support/gateway.ts';
import { startRawUpstream } from './support/upstreams.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/** An upstream that answers everything, with the request lines that it got. */
async function startUpstream() {
  const { port, heads } = await startRawUpstream((socket) => socket.write(OK));
  return { port, lines: () => heads.map((head) => head.split('\r\n')[0]) };
}

describe('the base path is put before the approved path, and nothing else changes', () => {
  test.each(['/a', '/a?b=/../c&d=%2e%2e', '/a%C3%A4%20b', '//a//b/', '/a;b=c/@d', '/?'])('%s', async (path) => {
    const upstream = await startUpstream();
    const gateway = await startGateway(upstream.port, { urls: [new URL(`http://127.0.0.1:${upstream.port}/v2/base`)] });
    await call(gateway.port, path);
    expect(upstream.lines()).toEqual([`GET /v2/base${path} HTTP/1.1`]);
    expect(await gateway.nextOutcome()).toMatchObject({ upstream: `127.0.0.1:${upstream.port}/v2/base` });
  });
});

test('each of several upstreams has its own base path, those of one origin too', async () => {
  const [first, second] = [await startUpstream(), await startUpstream()];
  const [a, b] = [first, second].map(({ port }) => `http://127.0.0.1:${port}`);
  const gateway = await startGateway(first.port, { urls: [new URL(`${a}/one`), new URL(`${a}/two`), new URL(`${b}`)] });
  for (let i = 0; i < 3; i++) await call(gateway.port, '/x', 'HEAD');
  expect(first.lines().sort()).toEqual(['HEAD /one/x HTTP/1.1', 'HEAD /two/x HTTP/1.1']);
  expect(second.lines()).toEqual(['HEAD /x HTTP/1.1']);
  expect(gateway.backend.status().map(({ url }) => url)).toEqual([`${a}/one`, `${a}/two`, b]);
});

test('a retry on another upstream uses the base path of that one', async () => {
  const [closed, upstream] = [await freePort(), await startUpstream()];
  const urls = [new URL(`http://127.0.0.1:${closed}/gone`), new URL(`http://127.0.0.1:${upstream.port}/base`)] as const;
  const gateway = await startGateway(upstream.port, { urls: [...urls] });
  for (let i = 0; i < 2; i++) expect((await call(gateway.port, '/x')).status).toBe(200);
  expect(upstream.lines()).toEqual(['GET /base/x HTTP/1.1', 'GET /base/x HTTP/1.1']);
});

test('a health check asks for its path as it is written', async () => {
  const upstream = await startUpstream();
  await startGateway(upstream.port, {
    urls: [new URL(`http://127.0.0.1:${upstream.port}/base`)],
    healthCheck: { path: '/healthz', intervalMs: 60_000 },
  });
  await expect.poll(upstream.lines).toEqual(['GET /healthz HTTP/1.1']);
});

test('through the whole gateway: aliases, refusals, metric, and an assertion for the origin', async () => {
  const [store, backend] = [await EMBEDDED_STORE.start(), await startBackend()];
  onTestFinished(() => store.close());
  onTestFinished(() => backend.close());
  const upstreamUrl = `${backend.url}/team-a/`;
  const identity = { assertion: { signing_key_file: await temporaryFile('signing.pem', createPemPair().privatePem) } };
  const gateway = await startTestGateway({ storeUrl: store.url, upstreamUrl, config: { identity } });
  onTestFinished(() => gateway.close());
  const headers = bearer(await createCustomerWithKey(gateway, { id: 'acme', plan: 'starter' }));
  const port = Number(new URL(gateway.public).port);

  await fetch(`${gateway.public}/v1/conversations?limit=1`, { headers });
  await fetch(`${gateway.public}/api/v1/conversations/x`, { headers });
  for (const path of ['/team-a/v1/conversations', '/v1/conversations/..', '/v1/conversations/%2e%2e']) {
    expect((await call(port, path)).status).toBeGreaterThanOrEqual(400);
  }
  expect(backend.seen.map(({ url }) => url)).toEqual([
    '/team-a/api/v1/conversations?limit=1',
    '/team-a/api/v1/conversations/x',
  ]);
  const assertion = decodeJwt(String(backend.seen[0]?.headers['x-tollgate-assertion']));
  expect(assertion.aud).toBe(backend.url);
  expect(await readMetric(gateway, 'tollgate_upstream_up')).toEqual({
    [`backend="default",upstream="${backend.url}/team-a"`]: 1,
  });
});
