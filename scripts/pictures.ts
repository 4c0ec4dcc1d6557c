/**
 * Takes the pictures in docs/images again, by tests in Chromium, and records beside them which sources of the pages they
 * show: `npm run lab -- pictures`. Between releases they may be older than the pages, so `npm run check` only warns.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const REPOSITORY = fileURLToPath(new URL('../', import.meta.url));
const IMAGES = join(REPOSITORY, 'docs/images');
const SHOWN = join(IMAGES, 'pages.sha256');
const TAKEN = join(REPOSITORY, 'var/pictures');
const NAMES = ['overview', 'customer', 'preview', 'portal'];
const TESTS = ['test/console/browser/walk-redis.test.ts', 'test/portal/browser/pages-redis.test.ts'];
const TITLES = 'Redis.*((overview|customer) is accessible|a limit is tried out|every page and dialog.*: light)';

/** Returns the SHA-256 of the sources of all pages, in hex. */
function pagesHash(): string {
  const hash = createHash('sha256');
  for (const file of globSync('src/pages/*/*', { cwd: REPOSITORY }).toSorted()) {
    hash.update(`${file}\0`).update(readFileSync(join(REPOSITORY, file)));
  }
  return hash.digest('hex');
}

/** Notes that the pictures show the present pages. */
export function recordPages(): void {
  writeFileSync(SHOWN, `${pagesHash()}\n`);
}

/** Returns a warning if the pages changed since the pictures were taken. */
export function pictureWarnings(): string[] {
  if (existsSync(SHOWN) && readFileSync(SHOWN, 'utf8').trim() === pagesHash()) return [];
  return ['docs/images shows older pages: "npm run lab -- pictures" takes the pictures again, as every release does'];
}

export function takePictures(): void {
  rmSync(TAKEN, { recursive: true, force: true });
  const options = ['--config', 'vitest.console.config.ts', '-t', TITLES];
  const env = { ...process.env, CONSOLE_SCREENSHOTS: TAKEN };
  execFileSync('npx', ['vitest', 'run', ...options, ...TESTS], { cwd: REPOSITORY, env, stdio: 'inherit' });
  for (const name of NAMES) copyFileSync(join(TAKEN, `${name}-light.png`), join(IMAGES, `${name}.png`));
  recordPages();
}
