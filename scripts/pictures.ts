/** `npm run lab -- pictures`: takes the pictures in docs/images again, by tests of `npm run test:console`. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const TAKEN = 'var/pictures';
const TESTS = 'Redis.*(light.*(overview|customer) is|a limit is tried out|every page and dialog.*: light)';
const FILES = ['test/console/browser/walk.test.ts', 'test/portal/browser/pages.test.ts'];

rmSync(`${ROOT}${TAKEN}`, { recursive: true, force: true });
execFileSync('npx', ['vitest', 'run', '--config', 'vitest.console.config.ts', '-t', TESTS, ...FILES], {
  cwd: ROOT,
  env: { ...process.env, CONSOLE_SCREENSHOTS: TAKEN },
  stdio: 'inherit',
});
for (const name of ['overview', 'customer', 'preview', 'portal']) {
  copyFileSync(`${ROOT}${TAKEN}/${name}-light.png`, `${ROOT}docs/images/${name}.png`);
}
