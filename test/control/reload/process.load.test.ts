/** A reload as whoever runs the program asks for it: by a signal to the process. */
import { readFile, writeFile } from 'node:fs/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { stringify } from 'yaml';
import { temporaryFile } from '../../cli/support.ts';
import { bearer, createCustomerWithKey } from '../../support/admin.ts';
import { startBackend } from '../../support/backend.ts';
import { ADMIN_TOKEN } from '../../support/gateway.ts';
import { startProgram } from '../../support/process.ts';

test('SIGHUP has the running process read its file again, with its environment, and ends nothing', async () => {
  const backend = await startBackend();
  onTestFinished(() => backend.close());
  const address = { host: '127.0.0.1', port: 0 };
  const file = await temporaryFile(
    'gateway.yaml',
    stringify({
      listen: address,
      ops: address,
      admin: { ...address, token: ADMIN_TOKEN },
      store: { url: 'sqlite:store.sqlite' },
      upstream: { urls: [backend.url] },
      plans: { starter: { requests_per_hour: 100 } },
      shutdown: { not_ready_ms: 1, drain_ms: 1000 },
    }),
  );
  const gateway = await startProgram({ args: ['--config', file], env: { LIMIT: '77' } });
  const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'starter' });
  const read = () => fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) });
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
