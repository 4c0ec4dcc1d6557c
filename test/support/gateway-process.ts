import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { createCustomerWithKey } from './admin.ts';
import { type Backend, startBackend } from './backend.ts';
import { ADMIN_TOKEN } from './gateway.ts';
import { type RunningGateway, startProgram } from './process.ts';

/** Of the customer that the gateway has, if its store is the embedded one. */
export const KEY = 'key-of-the-good-caller';

export interface GatewayProcess extends RunningGateway {
  readonly backend: Backend;
  /** One value of the metrics, by its name and, where it has them, labels as the exposition writes them. */
  metric(sample: string): Promise<number>;
}

export interface GatewayProcessSettings {
  /** Sections of the configuration, and settings outside of sections. */
  readonly config?: Readonly<Record<string, unknown>> &
    Readonly<Partial<Record<'listen' | 'upstream' | 'logging', Record<string, unknown>>>>;
  readonly answer?: Parameters<typeof startBackend>[0];
  readonly env?: Readonly<Record<string, string>>;
}

/** A gateway in a process of its own, so that what it uses can be told from what the test does. Ends with the test. */
export async function startGatewayProcess(settings: GatewayProcessSettings = {}): Promise<GatewayProcess> {
  const { config = {}, answer, env } = settings;
  const backend = await startBackend(answer);
  onTestFinished(() => backend.close());
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-process-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'gateway.yaml');
  const anyPort = { host: '127.0.0.1', port: 0 };
  const isEmbedded = config.store === undefined;
  const sections = {
    store: { url: 'sqlite:store.sqlite' },
    plans: { unlimited: { requests_per_hour: 1_000_000_000 } },
    ...config,
    listen: { ...anyPort, ...config.listen },
    ops: anyPort,
    upstream: { urls: [backend.url], ...config.upstream },
    logging: { access: 'off', ...config.logging },
    ...(isEmbedded && { admin: { ...anyPort, token: ADMIN_TOKEN } }),
  };
  await writeFile(file, stringify(sections));
  const gateway = await startProgram({ args: ['--config', file], ...(env && { env }) });
  if (isEmbedded) await createCustomerWithKey(gateway, { id: 'good', plan: 'unlimited' }, KEY);
  return {
    ...gateway,
    backend,
    async metric(sample) {
      const text = await (await fetch(`${gateway.ops}/metrics`)).text();
      const line = text.split('\n').find((each) => each.startsWith(`${sample} `));
      if (line === undefined) throw new Error(`there is no ${sample}`);
      return Number(line.slice(sample.length + 1));
    },
  };
}
