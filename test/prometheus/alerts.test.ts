import { spawnSync } from 'node:child_process';
import { expect, inject, it } from 'vitest';
import { PROMETHEUS_FOLDER } from './files.ts';

function runPromtool(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(inject('promtool'), args, { cwd: PROMETHEUS_FOLDER, encoding: 'utf8' });
  return { status, output: stdout + stderr };
}

it('Prometheus accepts its configuration and the alerts', () => {
  const { status, output } = runPromtool('check', 'config', 'prometheus.yml');
  expect(status, output).toBe(0);
});

it('every alert fires when it should, and is silent when it should be', () => {
  const { status, output } = runPromtool('test', 'rules', 'alerts.test.yaml');
  expect(status, output).toBe(0);
});
