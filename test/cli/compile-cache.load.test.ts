/** bin/tollgate.js keeps compiled modules for the next start: in the package's own folder, and only if it can. */
import { cpSync, globSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { REPOSITORY } from '../deploy/support/dockerfile.ts';
import { run } from './support.ts';

/** Tests set a cache of their own, which takes precedence. */
const env = { NODE_COMPILE_CACHE: '' };

/** A checkout without packages. Its sources find those of this one. */
function checkout(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-checkout-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const path of ['bin', 'package.json']) cpSync(join(REPOSITORY, path), join(folder, path), { recursive: true });
  symlinkSync(join(REPOSITORY, 'src'), join(folder, 'src'));
  return folder;
}

test('a start keeps compiled modules beside the packages, where nobody else can plant code', async () => {
  const folder = checkout();
  expect(await run(process.execPath, [join(folder, 'bin/tollgate.js'), '--version'], { env })).toMatchObject({
    status: 0,
  });
  expect(globSync('node_modules/.cache/node-compile/*/*', { cwd: folder }).length).toBeGreaterThan(10);
});

test('where the folder cannot be written, the program runs all the same, and says nothing', async () => {
  const folder = checkout();
  // Root could write a folder that is read-only.
  writeFileSync(join(folder, 'node_modules'), '');
  const ended = await run(process.execPath, [join(folder, 'bin/tollgate.js'), '--version'], { env });
  expect(ended).toMatchObject({ status: 0, stderr: '' });
});
