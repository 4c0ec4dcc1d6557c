/** A Prometheus of its own, which scrapes the given targets every second and evaluates the alerts. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { inject, onTestFinished } from 'vitest';
import { parse, stringify } from 'yaml';
import { freePort } from '../../bench/free-port.ts';
import { PROMETHEUS_FOLDER } from './files.ts';

interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  /** Unix time in seconds, and the value as a text. */
  readonly value: readonly [number, string];
}

interface Rule {
  readonly name: string;
  /** `ok`, or not if the last evaluation failed. */
  readonly health: string;
  readonly state: string;
  readonly lastError?: string;
}

export interface PrometheusServer {
  /** What the expression yields now. @throws Error with what Prometheus says, when it cannot be evaluated. */
  query(expr: string): Promise<readonly Sample[]>;
  rules(): Promise<readonly Rule[]>;
}

interface ApiAnswer {
  readonly status: 'success' | 'error';
  readonly data: {
    readonly result: readonly Sample[];
    readonly groups: readonly { readonly rules: readonly Rule[] }[];
  };
  readonly error?: string;
}

const START_DEADLINE_MS = 60_000;

/**
 * With the prometheus.yml and the rules of `source` as they are, but for the targets (host and port) and shorter intervals.
 * Ends with the test.
 */
export async function startPrometheus(
  targets: readonly string[],
  source = PROMETHEUS_FOLDER,
): Promise<PrometheusServer> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-prometheus-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await cp(source, folder, { recursive: true });
  const config = parse(await readFile(join(folder, 'prometheus.yml'), 'utf8'));
  config.global = { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' };
  config.scrape_configs[0].static_configs = [{ targets }];
  await writeFile(join(folder, 'prometheus.yml'), stringify(config));
  // Prometheus cannot say which port it took, so it is given one.
  const address = `127.0.0.1:${await freePort()}`;
  const child = spawn(
    inject('prometheus'),
    [
      '--config.file=prometheus.yml',
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=${address}`,
      '--log.level=warn',
    ],
    { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const exited = once(child, 'exit');
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await exited;
  });

  async function ask(path: string) {
    const res = await fetch(`http://${address}${path}`);
    const { status, data, error } = (await res.json()) as ApiAnswer;
    if (status !== 'success') throw new Error(`${path}: ${error}`);
    return data;
  }

  const deadline = Date.now() + START_DEADLINE_MS;
  while (!(await isReady(address))) {
    if (child.exitCode !== null || Date.now() > deadline) throw new Error(`Prometheus did not start: ${stderr}`);
    await setTimeout(100);
  }
  return {
    query: async (expr) => (await ask(`/api/v1/query?query=${encodeURIComponent(expr)}`)).result,
    rules: async () => (await ask('/api/v1/rules')).groups.flatMap(({ rules }) => rules),
  };
}

function isReady(address: string): Promise<boolean> {
  return fetch(`http://${address}/-/ready`).then(
    ({ ok }) => ok,
    () => false,
  );
}
