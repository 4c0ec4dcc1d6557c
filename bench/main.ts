/** The benchmark's command line: `npm run lab -- bench --help`. docs/benchmarks.md says what is measured and how. */
import { readFileSync, writeFileSync } from 'node:fs';
import { Command, InvalidArgumentError, Option } from 'commander';
import { describeEnvironment } from './environment.ts';
import { PEER_NAMES, type PeerName } from './peers.ts';
import { allowedCpus, choosePinning } from './pinning.ts';
import { findPrograms, type Programs } from './programs.ts';
import { hasPlaceFor, placeResults, renderFindings } from './report.ts';
import type { Scenario, Settings } from './scenario.ts';
import { compareChecks } from './scenarios/checks.ts';
import { spreadCustomers } from './scenarios/customers.ts';
import { measureGarbage } from './scenarios/garbage.ts';
import { holdIdleConnections } from './scenarios/idle.ts';
import { measureLatency } from './scenarios/latency.ts';
import { watchMemory } from './scenarios/memory.ts';
import { comparePeers } from './scenarios/peers.ts';
import { profileRequests } from './scenarios/profile.ts';
import { floodWithRefused } from './scenarios/refused.ts';
import { compareSizes, compareUploads } from './scenarios/sizes.ts';
import { streamEvents } from './scenarios/streams.ts';
import { measureTail } from './scenarios/tail.ts';
import { measureTracing } from './scenarios/tracing.ts';
import { compareWorkers } from './scenarios/workers.ts';
import { startSurroundings } from './surroundings.ts';
import { exitOnSignals } from './workspace.ts';

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  peers: comparePeers,
  sizes: compareSizes,
  uploads: compareUploads,
  streams: streamEvents,
  customers: spreadCustomers,
  refused: floodWithRefused,
  checks: compareChecks,
  latency: measureLatency,
  tail: measureTail,
  idle: holdIdleConnections,
  memory: watchMemory,
  profile: profileRequests,
  garbage: measureGarbage,
  workers: compareWorkers,
  tracing: measureTracing,
};
/** Each has the results of other scenarios. */
const PAGES = ['../docs/benchmarks.md', '../docs/dev/benchmarks.md'].map((page) => new URL(page, import.meta.url));

interface Options {
  readonly scenario: readonly string[];
  readonly peers: readonly PeerName[];
  readonly rounds: number;
  readonly slice: number;
  readonly requests: number;
  readonly write: boolean;
}

const program = new Command('npm run lab -- bench')
  .description('Measures the gateway against its peers. Prints Markdown; progress goes to standard error.')
  .addOption(
    new Option('--scenario <names>', `what to measure: ${Object.keys(SCENARIOS).join(', ')}, or all`)
      .default(['peers'], 'peers')
      .argParser((text) => (text === 'all' ? Object.keys(SCENARIOS) : parseNames(Object.keys(SCENARIOS), text))),
  )
  .addOption(
    new Option(
      '--peers <names>',
      `gateways that take part, besides tollgate and its control: ${PEER_NAMES.slice(2).join(', ')}`,
    )
      .default(PEER_NAMES, 'all')
      .argParser((text) => parseNames(PEER_NAMES, `tollgate,tollgate-again,${text}`)),
  )
  .option('--rounds <number>', 'how often each gateway has its turn', parseCount, 12)
  .option('--slice <seconds>', 'length of a turn', parsePositive, 2.5)
  .option('--requests <number>', 'how many requests the scenario memory sends', parseCount, 1_000_000)
  .option('--write', 'put the results into docs/benchmarks.md or docs/dev/benchmarks.md', false)
  .parse();

exitOnSignals();
process.exitCode = await run(program.opts<Options>());

async function run({ scenario: names, peers, rounds, slice, requests, write }: Options): Promise<number> {
  const programs = findProgramsOrExit();
  const pinning = choosePinning(programs.taskset, allowedCpus());
  const environment = `${describeEnvironment(programs)} ${pinning.remark}`;
  const settings: Settings = { rounds, sliceMs: slice * 1000, requests, peers, say: (line) => console.error(line) };
  let failed = false;
  for (const name of names) {
    const measure = SCENARIOS[name];
    if (measure === undefined) continue;
    console.error(`scenario ${name}`);
    await using surroundings = await startSurroundings(programs, pinning, process.env.PATH);
    const findings = await measure(surroundings, settings);
    const results = renderFindings(findings, environment);
    console.log(`\n## ${name}\n\n${results}\n`);
    for (const problem of findings.problems) console.error(`FAILED: ${problem}`);
    if (findings.problems.length > 0) failed = true;
    else if (write) writeResults(name, results);
  }
  return failed ? 1 : 0;
}

function writeResults(name: string, results: string): void {
  const page = PAGES.find((each) => hasPlaceFor(readFileSync(each, 'utf8'), name));
  if (page === undefined) throw new Error(`no page has a place for the results of "${name}"`);
  writeFileSync(page, placeResults(readFileSync(page, 'utf8'), name, results));
}

function findProgramsOrExit(): Programs {
  if (process.platform !== 'linux') program.error('CPU times are read from /proc: the benchmark runs on Linux only.');
  try {
    return findPrograms(process.env);
  } catch (error) {
    return program.error(error instanceof Error ? error.message : String(error));
  }
}

function parseNames<T extends string>(known: readonly T[], text: string): T[] {
  const names = text.split(',').map((name) => {
    const found = known.find((each) => each === name);
    if (found === undefined) throw new InvalidArgumentError(`There is ${known.join(', ')}.`);
    return found;
  });
  return [...new Set(names)];
}

function parsePositive(text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new InvalidArgumentError('It has to be a number above 0.');
  return value;
}

function parseCount(text: string): number {
  const value = parsePositive(text);
  if (!Number.isInteger(value)) throw new InvalidArgumentError('It has to be a whole number.');
  return value;
}
