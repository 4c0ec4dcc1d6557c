import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { tollgateHere } from '../cli/support.ts';
import { runProgram } from '../support/process.ts';

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-command-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

async function configFile(content: string): Promise<string> {
  const file = join(await newFolder(), 'gateway.yaml');
  await writeFile(file, content);
  return file;
}

const GOOD = 'store: { url: "sqlite:store.sqlite" }\nupstream: { urls: ["http://127.0.0.1:3000"] }\n';
const BROKEN = 'store: { url: "sqlite:store.sqlite" }\nlisten: { prot: 8080 }\nupstream: { urls: [ftp://backend] }\n';

describe('help', () => {
  it('lists the commands', async () => {
    const { status, stdout, stderr } = await runProgram({ args: ['--help'] });
    expect(status).toBe(0);
    expect(stdout).toMatch(/^Usage: tollgate /);
    expect(stdout).toMatch(/^ {2}start .*run the gateway/m);
    expect(stdout).toMatch(/^ {2}check-config .*check a configuration file/m);
    expect(stderr).toBe('');
  });

  it.each([
    ['start', '--config <file>'],
    ['check-config', '<file>'],
  ])('%s --help shows what the command takes', async (command, usage) => {
    const { status, stdout } = await tollgateHere(command, '--help');
    expect(status).toBe(0);
    expect(stdout).toContain(usage);
  });
});

it.each([
  ['no command', []],
  ['an unknown command', ['strat']],
  ['an unknown option', ['start', '--config', 'gateway.yaml', '--fast']],
  ['start without --config', ['start']],
  ['a file too many', ['check-config', 'a.yaml', 'b.yaml']],
])('%s is wrong usage: status 2, and a hint at --help or the help itself', async (_, args) => {
  const { status, stdout, stderr } = await tollgateHere(...args);
  expect(status).toBe(2);
  expect(stderr).toMatch(/--help|Usage:/);
  expect(stderr).not.toMatch(/^ {4}at /m);
  expect(stdout).toBe('');
});

describe('check-config', () => {
  it('says in one line that a file is good', async () => {
    const file = await configFile(GOOD);
    const { status, stdout, stderr } = await runProgram({ args: ['check-config', file] });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toBe(`${file} is valid: 4 plans, 2 routes.\n`);
  });

  it('counts one plan as 1 plan', async () => {
    const file = await configFile(
      `${GOOD}plans: { only: { requests_per_hour: 5 } }\nroutes: [{ path: /v1/a, methods: [GET] }]\n`,
    );
    const { stdout } = await tollgateHere('check-config', file);
    expect(stdout).toBe(`${file} is valid: 1 plan, 1 route.\n`);
  });

  it('prints warnings on standard error, which --strict treats as errors', async () => {
    const file = await configFile(`${GOOD}plans: {}\nlimits: { header_bytes: 100 }\n`);
    const lenient = await tollgateHere('check-config', file);
    const warnings = lenient.stderr.trimEnd().split('\n');
    expect(warnings).toEqual([
      expect.stringMatching(/:3: warning: plans: is empty/),
      expect.stringMatching(/:4: warning: limits\.header_bytes: is below 1024 bytes/),
    ]);
    expect(lenient).toMatchObject({ status: 0, stdout: `${file} is valid: 0 plans, 2 routes.\n` });
    const strict = await tollgateHere('check-config', '--strict', file);
    expect(strict).toEqual({ status: 1, stdout: '', stderr: lenient.stderr });
  });

  it('prints every problem of a broken file, one a line, and nothing else', async () => {
    const file = await configFile(BROKEN);
    const { status, stdout, stderr } = await tollgateHere('check-config', file);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    const lines = stderr.trimEnd().split('\n');
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatch(new RegExp(`^${file}:2: listen\\.prot: .*port`));
    expect(lines[1]).toMatch(new RegExp(`^${file}:3: upstream\\.urls\\[0\\]: `));
  });

  it('says so when there is no such file', async () => {
    const file = join(await newFolder(), 'missing.yaml');
    const { status, stderr } = await tollgateHere('check-config', file);
    expect({ status, stderr }).toEqual({ status: 1, stderr: `${file}: cannot be read: there is no such file\n` });
  });

  it('finds the shipped gateway.yaml good', async () => {
    const file = fileURLToPath(new URL('../../config/gateway.yaml', import.meta.url));
    const env = { REDIS_URL: 'redis://127.0.0.1:6390', UPSTREAM_URL: 'http://127.0.0.1:3000' };
    expect((await runProgram({ args: ['check-config', file], env })).status).toBe(0);
  });
});

describe('start', () => {
  it('refuses a broken file as check-config does', async () => {
    const file = await configFile(BROKEN);
    const { status, stdout, stderr } = await runProgram({ args: ['start', '--config', file] });
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr.trimEnd().split('\n')).toEqual([
      expect.stringContaining(':2: listen.prot: '),
      expect.stringContaining(':3: upstream.urls[0]: '),
    ]);
  });

  // The public listener is the last one to be bound: that the process ends shows that all before it was closed.
  it('says which setting to change when a port is in use, and ends', async () => {
    const occupant = createServer().listen(0, '127.0.0.1');
    await once(occupant, 'listening');
    onTestFinished(() => void occupant.close());
    const address = occupant.address();
    const port = address !== null && typeof address === 'object' ? address.port : 0;
    const sections = ['listen', 'ops', 'admin'].map(
      (name) => `${name}: { host: 127.0.0.1, port: ${name === 'listen' ? port : 0} }\n`,
    );
    const file = await configFile(GOOD + sections.join(''));
    const { status, stderr } = await runProgram({ args: ['start', '--config', file] });
    expect(status).toBe(1);
    expect(stderr).toBe(
      `tollgate: cannot listen on 127.0.0.1:${port}: something else listens there already; choose another listen.host or listen.port\n`,
    );
  });
});
