/**
 * NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment of a gateway switched the verification of certificates off, for the
 * backend, Redis, webhooks and the keys of a JWT issuer, although the documentation said that nothing can.
 */
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFile } from '../cli/support.ts';
import { createCertificate } from '../support/certificates.ts';
import { runProgram } from '../support/process.ts';
import { startRedis } from '../support/redis-server.ts';

test('NODE_TLS_REJECT_UNAUTHORIZED=0 is ignored, with a warning: a self-signed backend and Redis are not trusted', async () => {
  const own = createCertificate();
  const redis = await startRedis({ tls: { cert: own.cert, key: own.key, ca: own.cert } });
  onTestFinished(() => redis.stop());
  let requests = 0;
  const backend = createServer({ cert: own.cert, key: own.key }, (_req, res) => {
    requests += 1;
    res.end();
  }).listen(0, '127.0.0.1');
  await once(backend, 'listening');
  onTestFinished(() => void backend.close());
  const url = `https://localhost:${(backend.address() as AddressInfo).port}`;
  const file = await temporaryFile(
    'gateway.yaml',
    `store: { url: "${redis.url}" }\nupstream: { urls: ["${url}"], health_check: { path: / } }\n`,
  );
  const { status, stdout, stderr } = await runProgram({
    args: ['check-config', file, '--connect'],
    env: { NODE_TLS_REJECT_UNAUTHORIZED: '0' },
  });
  expect(status).toBe(1);
  expect(stderr).toMatch(/^warning: NODE_TLS_REJECT_UNAUTHORIZED=0 is ignored/);
  const lines = `${stdout}${stderr}`.split('\n');
  expect(lines.find((line) => line.startsWith('store '))).toMatch(/failed|self.signed|SELF_SIGNED/i);
  expect(lines.find((line) => line.startsWith('upstream '))).toMatch(/failed|self.signed|SELF_SIGNED/i);
  expect(requests).toBe(0);
});
