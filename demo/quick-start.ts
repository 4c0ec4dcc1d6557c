/** The quick start: `tollgate try` that has a sample API, with a customer for each plan, for users who give no URL. */
import { runCommandLine } from '../src/cli/command-line.ts';
import type { TriedApi } from '../src/cli/try/tried-api.ts';
import { startSampleBackend } from './sample-backend/sample-backend.ts';

const sample: Omit<TriedApi, 'url'> = {
  name: 'a sample backend',
  template: 'gateway.yaml',
  customers: [
    { id: 'demo-starter', name: 'Demo Starter', plan: 'starter', key: 'tg_demo_starter' },
    { id: 'demo-professional', name: 'Demo Professional', plan: 'professional', key: 'tg_demo_professional' },
    { id: 'demo-business', name: 'Demo Business', plan: 'business', key: 'tg_demo_business' },
    {
      id: 'demo-enterprise',
      name: 'Demo Enterprise',
      plan: 'enterprise',
      requests_per_hour: 50_000,
      key: 'tg_demo_enterprise',
    },
  ],
  example: { method: 'GET', target: '/v1/conversations?limit=2' },
  next: 'In front of your own backend: npm start -- http://localhost:3000',
};

const startSample = async () => ({ ...sample, ...(await startSampleBackend({ host: '127.0.0.1', port: 0 })) });
process.exit(await runCommandLine(['try', ...process.argv.slice(2)], { startSample }));
