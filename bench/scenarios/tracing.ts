/** What traces cost, by the share of the requests that have one. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createCustomer, writeCustomers } from '../customers.ts';
import { readCounter } from '../metrics.ts';
import { startTollgate, type Tollgate } from '../peers.ts';
import { probe } from '../probe.ts';
import { formatSpread } from '../report.ts';
import { medianOf, pairwise, type Rounds, runRounds, type Spread } from '../rounds.ts';
import { BUSY_CONNECTIONS, costCells, describeRounds, jobFor, roundsSettings, type Scenario } from '../scenario.ts';
import { expectBody } from '../slice.ts';
import { LIST_PATH, type Surroundings } from '../surroundings.ts';

const OFF = 'off';
const RATIOS = [0, 0.01, 0.1, 1];
const TARGET_MICROS = 1;
const HEAD = ['traced', 'CPU µs/request', 'of Redis', 'ratio to off', 'µs more than off', 'requests/s', 'p99 ms'];

export const measureTracing: Scenario = async (surroundings, settings) => {
  const { upstream, redis } = surroundings;
  const gateways = new Map<string, Tollgate>();
  for (const name of [OFF, `${OFF}, again`]) gateways.set(name, await startTollgate(surroundings));
  for (const ratio of RATIOS) {
    gateways.set(`${100 * ratio} %`, await startTollgate(surroundings, { config: writeConfig(surroundings, ratio) }));
  }
  const customer = createCustomer('bench');
  await writeCustomers(redis.client, [customer]);
  const { body } = await probe(`${upstream.origin}${LIST_PATH}`, undefined);
  const load = { path: LIST_PATH, connections: BUSY_CONNECTIONS, key: customer.key, expected: expectBody(body) };
  const jobs = [...gateways].map(([name, gateway]) => jobFor(gateway, { ...load, name }));
  const rounds = await runRounds(jobs, roundsSettings(surroundings, settings));
  const dropped: string[] = [];
  for (const [name, { opsOrigin }] of gateways) {
    dropped.push(`${name}: ${await readCounter(opsOrigin, 'tollgate_trace_spans_dropped_total')}`);
  }
  return {
    table: { head: HEAD, rows: jobs.map(({ name }) => row(rounds, name)) },
    remarks: [
      `${describeRounds(settings)} Connections: ${BUSY_CONNECTIONS}.`,
      `The target is at most ${TARGET_MICROS} µs more for 1 %. Differences so small are below the noise; by the row 100 %, it is ${(moreThanOff(rounds, '100 %').median / 100).toFixed(2)} µs.`,
      'The collector is the nginx that is the backend, too: it reads each export and responds 200.',
      `Spans dropped, because the collector did not take them fast enough: ${dropped.join(', ')}.`,
    ],
    problems: rounds.problems,
  };
};

/** Returns the file name of the usual configuration, with traces. */
function writeConfig({ workspace, upstream }: Surroundings, ratio: number): string {
  const usual = readFileSync(new URL('../../config/gateway.yaml', import.meta.url), 'utf8');
  const file = join(workspace.folder, `tracing-${ratio}.yaml`);
  writeFileSync(file, `${usual}\ntracing: { endpoint: "${upstream.origin}/v1/traces", sample_ratio: ${ratio} }\n`);
  return file;
}

function row(rounds: Rounds, name: string): string[] {
  return [
    ...costCells(rounds, name, OFF),
    formatSpread(moreThanOff(rounds, name), 1),
    medianOf(rounds, name, ({ requestsPerSecond }) => requestsPerSecond).toFixed(0),
    (medianOf(rounds, name, ({ p99 }) => p99) / 1000).toFixed(2),
  ];
}

function moreThanOff(rounds: Rounds, name: string): Spread {
  return pairwise(rounds, [name, OFF], (slice, off) => slice.gatewayMicros - off.gatewayMicros);
}
