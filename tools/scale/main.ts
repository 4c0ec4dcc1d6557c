/** `npm run lab -- scale --help`. docs/dev/evidence.md says what is simulated and what the numbers mean. */
import { Command, InvalidArgumentError } from 'commander';
import { renderTable } from '../../bench/report.ts';
import { type ClassResult, type ScaleResult, simulateScale } from './simulation.ts';

interface Options {
  readonly customers: number;
  readonly gateways: number;
  readonly minutes: number;
  readonly seed: number;
  readonly json: boolean;
}

/** An hour's window fills, drops and fills again. */
const MIN_MINUTES = 61;
const MIN_CUSTOMERS = 100;

const program = new Command('npm run lab -- scale')
  .description(
    'Runs the lease algorithm in virtual time and counts what begins upstream. Fails when a customer got more than its limit.',
  )
  .option('--customers <number>', 'customers in all', atLeast(MIN_CUSTOMERS), 1_000_000)
  .option('--gateways <number>', 'gateways that share the store', atLeast(1), 1000)
  .option('--minutes <number>', 'virtual time', atLeast(MIN_MINUTES), 75)
  .option('--seed <number>', 'repeats a run exactly', atLeast(0), 1)
  .option('--json', 'print the result as JSON', false)
  .parse();

process.exitCode = await run(program.opts<Options>());

async function run({ customers, gateways, minutes, seed, json }: Options): Promise<number> {
  const startedMs = performance.now();
  const result = await simulateScale({
    customers,
    gateways,
    durationMs: minutes * 60_000,
    seed,
    progress: (elapsedMs) => {
      if (process.stderr.isTTY) process.stderr.write(`\r${elapsedMs / 60_000} of ${minutes} minutes`);
    },
  });
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(0);
  const mebibytes = Math.round(process.resourceUsage().maxRSS / 1024);
  console.error(`\n${minutes} virtual minutes in ${seconds} s, with ${mebibytes} MiB at most`);
  console.log(json ? JSON.stringify({ customers, gateways, minutes, seed, ...result }, undefined, 2) : render(result));
  return result.classes.some(({ tooMany }) => tooMany > 0) || result.stranded < 0 ? 1 : 0;
}

function render(result: ScaleResult): string {
  const { classes, crashes, lostConnections, granted, begun, stranded } = result;
  const table = renderTable({
    head: ['customers', 'number', 'requests', 'begun', 'refused', 'failed', 'store calls', 'a request', 'over limit'],
    rows: [...classes, total(classes)].map((each) => [
      each.name,
      ...[each.customers, each.requests, each.begun, each.refused, each.failed, each.storeCalls].map(format),
      (each.storeCalls / each.requests).toFixed(3),
      format(each.tooMany),
    ]),
  });
  const share = ((100 * stranded) / granted).toFixed(4);
  return [
    table,
    '',
    `${format(granted)} units were granted, ${format(begun)} of them begun. ${format(stranded)} were stranded (${share} %)`,
    `by ${format(crashes)} crashes of gateways and ${format(lostConnections)} replies lost with their connection.`,
  ].join('\n');
}

function total(classes: readonly ClassResult[]): ClassResult {
  const sum = (count: (each: ClassResult) => number) => classes.reduce((so, each) => so + count(each), 0);
  return {
    name: 'all',
    customers: sum(({ customers }) => customers),
    requests: sum(({ requests }) => requests),
    begun: sum(({ begun }) => begun),
    refused: sum(({ refused }) => refused),
    failed: sum(({ failed }) => failed),
    storeCalls: sum(({ storeCalls }) => storeCalls),
    tooMany: sum(({ tooMany }) => tooMany),
  };
}

function format(count: number): string {
  return count.toLocaleString('en');
}

function atLeast(least: number) {
  return (text: string): number => {
    const value = Number(text);
    if (!Number.isInteger(value) || value < least) {
      throw new InvalidArgumentError(`It has to be a whole number, at least ${least}.`);
    }
    return value;
  };
}
