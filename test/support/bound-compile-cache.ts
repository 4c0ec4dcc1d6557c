/**
 * Deletes the cache of compiled modules once it has many entries. vitest imports each test file by a URL with the time
 * in it, so each run adds an entry for each.
 */
import { readdirSync, rmSync } from 'node:fs';
import { CHILD_ENVIRONMENT } from './child-environment.ts';

const MAX_ENTRIES = 20_000;

// biome-ignore lint/style/noDefaultExport: vitest calls the default export of a globalSetup file
export default function setup(): void {
  const folder = CHILD_ENVIRONMENT.NODE_COMPILE_CACHE ?? '';
  try {
    if (readdirSync(folder, { recursive: true }).length > MAX_ENTRIES) rmSync(folder, { recursive: true });
  } catch {
    // There is none yet, or another run is deleting it: Node.js works without.
  }
}
