/**
 * `limits.header_bytes` bounded the heads of responses as well as those of requests. An operator who lowered it against
 * clients got 502 for responses of the backend.
 */
import { request } from 'node:http';
import { expect, test } from 'vitest';
import { bearer } from '../support/admin.ts';
import { startSystem } from '../support/system.ts';

test.each([
  ['limits.header_bytes does not bound the head of a response', { limits: { header_bytes: 2_000 } }, 200],
  ['upstream.response_header_bytes does', { upstream: { response_header_bytes: 20_000 } }, 502],
])('%s', async (_, config, status) => {
  const { gateway, key } = await startSystem({
    config,
    answer: (_req, res) => res.setHeader('X-A', 'a'.repeat(15_000)).setHeader('X-B', 'b'.repeat(15_000)).end(),
  });
  const response = await new Promise((resolve, reject) => {
    const options = { headers: bearer(key), maxHeaderSize: 100_000 };
    request(`${gateway.public}/v1/conversations`, options, (res) => resolve(res.resume().statusCode))
      .once('error', reject)
      .end();
  });
  expect(response).toBe(status);
});
