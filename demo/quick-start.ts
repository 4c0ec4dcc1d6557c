/**
 * The quick start: a gateway in front of the sample backend, with demo customers. Starts with an empty store, so that the
 * tour in README.md can be repeated, unless QUICK_START_STORE names a file that keeps its customers, keys and counters.
 * Generates an admin token unless TOLLGATE_ADMIN_TOKEN is set. Further arguments are options of `tollgate start`.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AdminClient } from '../src/api/client/admin-client.ts';
import { runCommandLine } from '../src/cli/command-line.ts';
import { processEnvironment } from '../src/config/environment.ts';
import { banner } from './banner.ts';
import { createDemoCustomers, createPortalLink } from './customers.ts';
import { startSampleBackend } from './sample-backend/sample-backend.ts';

// config/quickstart.yaml uses these variables. A reload reads them again.
const env = processEnvironment();
if (!env.QUICK_START_STORE) {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-quick-start-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  env.QUICK_START_STORE = join(folder, 'store.sqlite');
}
const generatedToken = env.TOLLGATE_ADMIN_TOKEN ? undefined : randomBytes(24).toString('base64url');
const token = env.TOLLGATE_ADMIN_TOKEN || generatedToken || '';
env.TOLLGATE_ADMIN_TOKEN = token;
const backend = await startSampleBackend({ host: '127.0.0.1', port: 0 });
env.SAMPLE_BACKEND_URL = backend.url.origin;

let portalLink = '';
let keyHeader = '';
const command = ['start', '--config', 'config/quickstart.yaml', ...process.argv.slice(2)];
const status = await runCommandLine(command, {
  // The public port opens when the demo customers exist: otherwise their keys would get 401 in the first moments.
  async beforeListening({ admin = '', portal = '' }) {
    const client = new AdminClient({ url: admin, token, tokenSource: 'TOLLGATE_ADMIN_TOKEN' });
    await createDemoCustomers(client);
    portalLink = await createPortalLink(client, portal);
    [keyHeader = ''] = (await client.call('GET /admin/v1/config')).auth?.key_headers ?? [];
  },
  async onStarted({ admin = '', ...addresses }) {
    // Only a generated token is shown: one that the user set would end up in the output.
    process.stdout.write(banner({ ...addresses, admin, portalLink, keyHeader }, generatedToken));
  },
});
process.exit(status);
