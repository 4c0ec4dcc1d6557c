/**
 * What `npm start` runs: the quick start. It begins anew each time, so that the tour in README.md can be repeated, unless
 * QUICK_START_STORE names a file that keeps its customers, keys and counters. Without an admin token it makes one for this
 * start, which the banner shows: all listeners of the quick start are on loopback addresses.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// Where config/quickstart.yaml takes it from.
const { env } = process;
if (!env.QUICK_START_STORE) {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-quick-start-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  env.QUICK_START_STORE = join(folder, 'store.sqlite');
}
if (!env.TOLLGATE_ADMIN_TOKEN) {
  env.TOLLGATE_ADMIN_TOKEN = randomBytes(24).toString('base64url');
  // Only a generated token is shown: one that the user set would end up in the output.
  env.QUICK_START_TOKEN = env.TOLLGATE_ADMIN_TOKEN;
}
process.argv.splice(2, 0, 'start', '--config', 'config/quickstart.yaml');
await import('./tollgate.js');
