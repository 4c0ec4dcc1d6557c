/**
 * Any response was aborted two minutes after its request, a download or an event stream in full flow included, and the access log
 * said `aborted` with status 200, as if the client had left.
 */
import { expect, test } from 'vitest';
import { load, MINIMAL } from '../config/support.ts';
import { bearer } from '../support/admin.ts';
import { startSystem } from '../support/system.ts';

test('by default, nothing limits how long a response takes that progresses', async () => {
  const { upstream } = await load(MINIMAL);
  expect(upstream).toMatchObject({ idleTimeoutMs: 60_000 });
  expect(upstream?.totalTimeoutMs).toBeUndefined();
});

test.each([
  ['idle_timeout', { idle_timeout_ms: 150 }],
  ['total_timeout', { response_timeout_ms: 1500, total_timeout_ms: 1500 }],
])('the access log names the reason of a truncated response: %s', async (failure, upstream) => {
  const { gateway, key } = await startSystem({
    answer: (_req, res) => void res.writeHead(200).write('the beginning'),
    config: { upstream },
  });
  const response = await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) });
  await expect(response.text()).rejects.toThrow();
  await expect
    .poll(() => gateway.logs.find(({ msg }) => msg === 'request'))
    .toMatchObject({ status: 200, aborted: true, failure });
});
