/** deploy/systemd/tollgate.service against the gateway that it runs. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { REPOSITORY, readCommand } from './support/dockerfile.ts';

const unit = readFileSync(join(REPOSITORY, 'deploy/systemd/tollgate.service'), 'utf8');

function setting(name: string): string {
  const [value, ...more] = [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map((match) => match[1]);
  if (value === undefined || more.length > 0) throw new Error(`the unit has not exactly one ${name}`);
  return value;
}

test('the unit starts as the image does, by the start file that says when Node.js is too old', () => {
  const [node, startFile, ...args] = setting('ExecStart').split(' ');
  const started = [...readCommand('ENTRYPOINT'), ...readCommand('CMD')];
  expect(node).toBe('/usr/bin/node');
  expect(existsSync(join(REPOSITORY, startFile ?? ''))).toBe(true);
  expect(['node', 'src/main.ts', ...args.slice(0, -1)]).toStrictEqual(started.slice(0, -1));
  expect(setting('ExecStartPre')).toContain(`${node} ${startFile} check-config `);
});

test('the unit checks the file that it starts with', () => {
  expect(setting('ExecStartPre').split(' ').at(-1)).toBe(setting('ExecStart').split(' ').at(-1));
});

test('the unit waits longer than a shutdown takes, and leaves it to the gateway to end its workers', async () => {
  const env = { REDIS_URL: 'redis://redis', UPSTREAM_URL: 'http://backend' };
  const { shutdown, limits } = await loadConfig(join(REPOSITORY, 'config/gateway.yaml'), env);
  expect(Number(setting('TimeoutStopSec')) * 1000).toBeGreaterThan(shutdown.notReadyMs + shutdown.drainMs);
  expect(setting('KillMode')).toBe('mixed');
  expect(Number(setting('LimitNOFILE'))).toBeGreaterThan(2 * limits.connections);
});

test('every setting of the unit is one line: systemd has no other comments', () => {
  for (const line of unit.split('\n')) expect(line).toMatch(/^$|^#|^\[\w+\]$|^\w+=[^#]*$/);
});
