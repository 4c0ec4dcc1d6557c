/** A reload as whoever runs the program asks for it: by a signal to the process. */
import { readFile, writeFile } from 'node:fs/promises';
import { expect, test, vi } from 'vitest';
import { stringify } from 'yaml';
import { temporaryFile } from '../cli/support.ts';
import { bearer } from '../support/admin.ts';
import { startProgram } from '../support/process.ts';

const KEY = 'a-key-of-the-tests';

test('SIGHUP has the running process read its file again, with its environment, and ends nothing', async () => {
  const address = { host: '127.0.0.1', port: 0 };
  const file = await temporaryFile(
    'gateway.yaml',
    stringify({
      listen: address,
      ops: address,
      store: { url: 'sqlite:store.sqlite' },
      upstream: { urls: ['sample'] },
      plans: { starter: { requests_per_hour: 100 } },
      seed: { customers: [{ id: 'acme', plan: 'starter', key: KEY }] },
      shutdown: { not_ready_ms: 1, drain_ms: 1000 },
    }),
  );
  const gateway = await startProgram({ args: ['--config', file], env: { LIMIT: '77' } });
  const read = () => fetch(`${gateway.public}/v1/conversations`, { headers: bearer(KEY) });
  expect((await read()).headers.get('x-ratelimit-limit')).toBe('100');

  const content = await readFile(file, 'utf8');
  gateway.signal('SIGHUP');
  await vi.waitFor(() => expect(gateway.output()).toContain('"trigger":"signal","result":"unchanged"'), 20_000);
  await writeFile(file, content.replace('requests_per_hour: 100', `requests_per_hour: \${LIMIT}`));
  gateway.signal('SIGHUP');
  await vi.waitFor(() => expect(gateway.output()).toContain('requests_per_hour: 100 → 77'), 20_000);
  expect((await read()).headers.get('x-ratelimit-limit')).toBe('77');
  gateway.signal('SIGTERM');
  expect((await gateway.finished).status).toBe(0);
});
