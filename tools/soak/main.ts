/**
 * `npm run lab -- soak --minutes N`: a gateway under a steady load, with one fault after another. After each it is to recover
 * by itself, and with the load gone it is to be no larger than before. Prints a report; fails when anything was wrong.
 */
import { writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { Command, InvalidArgumentError } from 'commander';
import { z } from 'zod';
import { exitOnSignals } from '../../bench/workspace.ts';
import { Dice } from '../simulator/dice.ts';
import { Clients } from './clients.ts';
import { type Fault, faultsFor } from './faults.ts';
import { type Round, renderReport } from './report.ts';
import { DEADLINES, openScene, type Scene } from './scene.ts';
import { findGrowth, readVitalsAtRest, VITALS } from './vitals.ts';

interface Options {
  readonly minutes: number;
  readonly workers: number;
  readonly seed: number;
  readonly json?: string;
}

/** Far above the gateway's own deadlines: a later response counts as none. */
const RESPONSE_DEADLINE_MS = Object.values(DEADLINES).reduce((sum, each) => sum + each, 0) + 5000;
const RECOVERS_WITHIN_MS = 20_000;
const SERVED_IN_A_ROW = 10;
/** How long nothing is broken, before a fault and after it. */
const WHOLE_MS = 750;
const READINESS = z.object({ status: z.string() });

const program = new Command('npm run lab -- soak')
  .description('Runs a gateway under load while Redis, backend, clients and configuration fail in turn.')
  .option('--minutes <number>', 'how long; each fault strikes at least once', positive, 5)
  .option('--workers <number>', 'workers of the gateway; with several, some are killed', positive, 1)
  .option('--seed <number>', 'order of the faults', positive, 1)
  .option('--json <file>', 'write the report as JSON, too')
  .parse();

exitOnSignals();
process.exitCode = await run(program.opts<Options>());

async function run({ minutes, workers, seed, json }: Options): Promise<number> {
  if (process.platform !== 'linux')
    program.error('Memory and descriptors are read from /proc: the soak runs on Linux.');
  const dice = new Dice(seed);
  await using scene = await openScene(workers);
  const { origin, good, spent } = scene;
  const clients = new Clients({ origin, good, spent, dice, deadlineMs: RESPONSE_DEADLINE_MS });
  const rounds: Round[] = [];
  const problems: string[] = [];
  const endsMs = performance.now() + minutes * 60_000;
  try {
    const faults = faultsFor(workers);
    for (let round = 0; round < faults.length || performance.now() < endsMs; ) {
      for (const fault of shuffled(faults, dice)) {
        if (++round > faults.length && performance.now() >= endsMs) break;
        rounds.push(await survive(fault, scene, clients));
        console.error(`${fault.name}: survived`);
      }
    }
  } catch (error) {
    problems.push(error instanceof Error ? error.message : String(error));
    await clients.stop();
  }
  for (const [violation, count] of clients.violations) problems.push(`${count} × ${violation}`);
  const vitals = rounds.map((round) => round.vitals);
  for (const name of VITALS) problems.push(...[findGrowth(vitals, name)].filter((growth) => growth !== undefined));
  const outcomes = Object.fromEntries([...clients.outcomes].toSorted());
  const report = { minutes, workers, seed, requests: clients.requests, outcomes, rounds, problems };
  console.log(renderReport(report));
  if (json !== undefined) writeFileSync(json, `${JSON.stringify(report, undefined, 2)}\n`);
  return problems.length === 0 ? 0 : 1;
}

async function survive(fault: Fault, scene: Scene, clients: Clients): Promise<Round> {
  const before = clients.requests;
  clients.round = fault.name;
  clients.start();
  await setTimeout(WHOLE_MS);
  clients.duringFault = true;
  await fault.strike(scene, clients);
  const mendedMs = performance.now();
  await recover(fault, scene, clients);
  const recoveredMs = performance.now() - mendedMs;
  clients.duringFault = false;
  await setTimeout(WHOLE_MS);
  await clients.stop();
  const redisKeys = () => scene.redis.client.dbsize();
  const vitals = await readVitalsAtRest({ ...scene, pid: scene.gateway.pid, redisKeys });
  return { fault: fault.name, recoveredMs, requests: clients.requests - before, vitals };
}

/** Until known keys are served again, and the gateway itself says that all is well. */
async function recover(fault: Fault, { opsOrigin }: Scene, clients: Clients): Promise<void> {
  const deadlineMs = performance.now() + RECOVERS_WITHIN_MS;
  let inARow = 0;
  while (inARow < SERVED_IN_A_ROW) {
    if (performance.now() > deadlineMs) {
      throw new Error(`${fault.name}: not recovered ${RECOVERS_WITHIN_MS / 1000} s after it ended`);
    }
    const outcome = await clients.probe();
    const isServed = outcome.kind === 'response' && outcome.status === 200;
    inARow = isServed && (await isReady(opsOrigin)) ? inARow + 1 : 0;
    await setTimeout(20);
  }
}

async function isReady(opsOrigin: string): Promise<boolean> {
  return READINESS.parse(await (await fetch(`${opsOrigin}/readyz`)).json()).status === 'ready';
}

function shuffled<T>(items: readonly T[], dice: Dice): T[] {
  return items
    .map((item) => ({ item, at: dice.next() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

function positive(text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new InvalidArgumentError('It has to be a number above 0.');
  return value;
}
