/** deploy/systemd/tollgate.service against the gateway that it runs. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, type TestContext, test } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { onPath } from '../support/programs.ts';
import { REPOSITORY, readCommand } from './support/dockerfile.ts';

const UNIT_FILE = join(REPOSITORY, 'deploy/systemd/tollgate.service');
const unit = readFileSync(UNIT_FILE, 'utf8');
const CONFIG = join(REPOSITORY, 'deploy/systemd/gateway.yaml');

/** Loads the config file with the credentials that the unit gives, each with its own name as its content. */
function loadWithCredentials(environment: Readonly<Record<string, string>> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-credentials-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [, name = ''] of unit.matchAll(/^LoadCredential=([^:]+):/gm))
    writeFileSync(join(folder, name), name === 'redis-url' ? 'redis://:secret@redis' : `content-of-${name}`);
  return loadConfig(CONFIG, { UPSTREAM_URL: 'http://backend', CREDENTIALS_DIRECTORY: folder, ...environment });
}

function setting(name: string): string {
  const [value, ...more] = [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map((match) => match[1]);
  if (value === undefined || more.length > 0) throw new Error(`the unit has not exactly one ${name}`);
  return value;
}

test('the unit starts as the image does, by the start file that says when Node.js is too old', () => {
  const [node, option, startFile, ...args] = setting('ExecStart').split(' ');
  const started = [...readCommand('ENTRYPOINT'), ...readCommand('CMD')];
  expect(node).toBe('/usr/bin/node');
  expect(existsSync(join(REPOSITORY, startFile ?? ''))).toBe(true);
  expect(['node', option, 'src/main.ts', ...args.slice(0, -1)]).toStrictEqual(started.slice(0, -1));
  expect(setting('ExecStartPre')).toContain(`${node} ${startFile} check-config `);
});

test('the unit checks the file that it starts with', () => {
  expect(setting('ExecStartPre').split(' ').at(-1)).toBe(setting('ExecStart').split(' ').at(-1));
});

test('the unit waits longer than a shutdown takes, and leaves it to the gateway to end its workers', async () => {
  const { shutdown, limits } = await loadWithCredentials();
  expect(Number(setting('TimeoutStopSec')) * 1000).toBeGreaterThan(shutdown.notReadyMs + shutdown.drainMs);
  expect(setting('KillMode')).toBe('mixed');
  expect(Number(setting('LimitNOFILE'))).toBeGreaterThan(2 * limits.connections);
});

test('the config file gets its secrets from the credentials that the unit loads', async () => {
  const { store, admin } = await loadWithCredentials();
  expect(store.url).toBe('redis://:secret@redis');
  expect(JSON.stringify(admin)).toContain('admin-token');
});

test('instances of the unit as a template have ports of their own', async () => {
  expect(unit).toMatch(/^EnvironmentFile=-\/etc\/tollgate\/environment-%i$/m);
  const { listen, ops, admin } = await loadWithCredentials({ PORT: '1', OPS_PORT: '2', ADMIN_PORT: '3' });
  expect([listen.port, ops.port, admin?.port]).toStrictEqual([1, 2, 3]);
});

// Without it, the check that an upstream is not the gateway's own listener fails, and the unit does not start.
test('the gateway may read the addresses of the machine', () => {
  expect(setting('RestrictAddressFamilies').split(' ')).toContain('AF_NETLINK');
});

describe('systemd', () => {
  /** Runs `systemd-analyze`, or skips the test where it cannot run. */
  function analyze(skip: TestContext['skip'], ...args: string[]) {
    skip(onPath(['systemd-analyze'], process.env) === undefined, 'systemd-analyze is not installed');
    const ended = spawnSync('systemd-analyze', args, { encoding: 'utf8' });
    skip(/unrecognized option|Unknown.*verb/i.test(ended.stderr), 'systemd is older than 250');
    return ended;
  }

  test('finds little that the unit exposes', ({ skip }) => {
    const args = ['security', '--offline=true', '--threshold=20', '--no-pager', UNIT_FILE];
    const { status, stdout } = analyze(skip, ...args);
    expect(status, stdout.split('\n').at(-2)).toBe(0);
  });

  test.for([
    ['a unit', 'tollgate.service', 'tollgate.service'],
    ['a template', 'tollgate@.service', 'tollgate@a.service'],
  ] as const)('accepts every line of it as %s', ([, installed, instance], { skip }) => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-unit-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    // systemd looks for the program, which a machine that runs the tests may have elsewhere.
    writeFileSync(join(folder, installed), unit.replaceAll('/usr/bin/node', process.execPath));
    const verify = ['verify', '--man=no', '--recursive-errors=no', join(folder, instance)];
    const { status, stderr } = analyze(skip, ...verify);
    expect({ status, stderr }).toStrictEqual({ status: 0, stderr: '' });
  });
});

test('every setting of the unit is one line: systemd has no other comments', () => {
  for (const line of unit.split('\n')) expect(line).toMatch(/^$|^#|^\[\w+\]$|^\w+=[^#]*$/);
});
