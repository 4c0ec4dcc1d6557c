import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { Agent, get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { bearer, createCustomerWithKey } from '../support/admin.ts';
import { startBackend } from '../support/backend.ts';
import { ADMIN_TOKEN } from '../support/gateway.ts';
import { type RunningGateway, startProgram } from '../support/process.ts';

const KEY = 'tg_demo_starter';
const CALLERS = 32;
/** As long as a target may be, because a log line has the route: so thousands of requests are not needed to fill the buffer. */
const PATH = `/v1/${'x'.repeat(8000)}`;

async function startGateway(): Promise<RunningGateway> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-log-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const backend = await startBackend();
  onTestFinished(() => backend.close());
  const anyPort = { host: '127.0.0.1', port: 0 };
  const file = join(folder, 'gateway.yaml');
  const sections = {
    listen: anyPort,
    ops: anyPort,
    admin: { ...anyPort, token: ADMIN_TOKEN },
    store: { url: 'sqlite:store.sqlite' },
    upstream: { urls: [backend.url] },
    routes: [{ path: PATH, methods: ['GET'] }],
    shutdown: { not_ready_ms: 1, drain_ms: 1000 },
  };
  await writeFile(file, stringify(sections));
  const gateway = await startProgram({ args: ['--config', file] });
  await createCustomerWithKey(gateway, { id: 'acme', plan: 'enterprise', requests_per_hour: 10_000_000 }, KEY);
  return gateway;
}

function openAgent(): Agent {
  const agent = new Agent({ keepAlive: true, maxSockets: CALLERS });
  onTestFinished(() => agent.destroy());
  return agent;
}

function ask(agent: Agent, gateway: RunningGateway): Promise<number> {
  return new Promise((resolve, reject) => {
    get(`${gateway.public}${PATH}`, { agent, headers: bearer(KEY) }, (res) => {
      res.resume().once('end', () => resolve(res.statusCode ?? 0));
    }).once('error', reject);
  });
}

async function droppedLines({ ops }: RunningGateway): Promise<number> {
  const metrics = await (await fetch(`${ops}/metrics`)).text();
  return Number(/^tollgate_log_lines_dropped_total (\d+)$/m.exec(metrics)?.[1]);
}

/** Forwarded requests until lines are lost. Refusals would be summed up. */
async function askUntilLinesAreLost(agent: Agent, gateway: RunningGateway): Promise<void> {
  while ((await droppedLines(gateway)) === 0) {
    for (let round = 0; round < 10; round++) {
      const statuses = await Promise.all(Array.from({ length: CALLERS }, () => ask(agent, gateway)));
      expect(new Set(statuses)).toEqual(new Set([200]));
    }
  }
}

it('a log that is not read any more loses lines, but delays no request and does not end the process', async () => {
  const gateway = await startGateway();
  const agent = openAgent();
  gateway.stdout.pause();
  await askUntilLinesAreLost(agent, gateway);
  expect(await ask(agent, gateway)).toBe(200);
  gateway.signal('SIGTERM');
  agent.destroy();
  // The process is gone once its ops listener is; only then is the rest of its output read.
  await expect
    .poll(
      () =>
        fetch(`${gateway.ops}/livez`).then(
          () => 'runs',
          () => 'gone',
        ),
      { timeout: 20_000 },
    )
    .toBe('gone');
  gateway.stdout.resume();
  expect(await gateway.finished).toMatchObject({ status: 0, stderr: '' });
});

it('a log whose reader has exited loses lines, but delays no request and does not end the process', async () => {
  const gateway = await startGateway();
  const agent = openAgent();
  gateway.stdout.destroy();
  await askUntilLinesAreLost(agent, gateway);
  expect(await ask(agent, gateway)).toBe(200);
  gateway.signal('SIGTERM');
  agent.destroy();
  expect(await gateway.finished).toMatchObject({ status: 0, stderr: '' });
});
