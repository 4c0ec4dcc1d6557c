/** Requests that may have an effect are written to one connection only, also while a gateway under load stops. */
import { expect, it } from 'vitest';
import { KEY, startGatewayProcess } from '../support/gateway-process.ts';
import { respond, startCountingBackend, twice } from './counting-backend.ts';
import { createClient } from './single-try-client.ts';
import { ANY_ROUTE } from './support.ts';

it('SIGTERM under load: each POST arrives at most once, and what the backend got is answered', async () => {
  const backend = await startCountingBackend((arrival) => void setTimeout(respond, 20 * Math.random(), arrival));
  const gateway = await startGatewayProcess({
    config: {
      upstream: { urls: [backend.url] },
      routes: [ANY_ROUTE],
      shutdown: { not_ready_ms: 100, drain_ms: 5_000 },
    },
  });
  const client = createClient(gateway.public, KEY);
  const answered: number[] = [];
  const loops = Array.from({ length: 16 }, async () => {
    for (let status = 200; status === 200; ) {
      status = await client.send('POST', 'a body');
      answered.push(status);
    }
  });
  await expect.poll(() => backend.begun).toBeGreaterThan(200);
  gateway.signal('SIGTERM');
  await Promise.all(loops);
  expect((await gateway.finished).status).toBe(0);
  expect(answered.filter((status) => status === 200)).toHaveLength(backend.begun);
  expect(twice(backend)).toEqual([]);
});
