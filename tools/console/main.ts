/**
 * `npm run lab -- console --help`: how long the calls of the console take with many customers, and what five open
 * consoles, or open pages of the portal, cost the clients of the gateway.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { Command, InvalidArgumentError, Option } from 'commander';
import { treeCpuMicros } from '../../bench/cpu.ts';
import { freePort } from '../../bench/free-port.ts';
import { runLoad } from '../../bench/load.ts';
import { startTollgate } from '../../bench/peers.ts';
import { allowedCpus, choosePinning } from '../../bench/pinning.ts';
import { findPrograms } from '../../bench/programs.ts';
import { renderTable } from '../../bench/report.ts';
import { median } from '../../bench/statistics.ts';
import { command, LIST_PATH, type Surroundings, startSurroundings } from '../../bench/surroundings.ts';
import { exitOnSignals } from '../../bench/workspace.ts';
import { systemClock } from '../../src/base/clock.ts';
import { openStore } from '../../src/store/open/open-store.ts';
import {
  call,
  PAGE_CALLS,
  POLLS,
  PORTAL_HISTORY,
  PORTAL_POLL,
  portalToken,
  TOKEN,
  timeCall,
  timeWalk,
  WALKS,
} from './calls.ts';
import { type FilledCustomer, fillStore } from './fill.ts';

interface Options {
  readonly store: 'redis' | 'sqlite';
  readonly customers: number;
  readonly turns: number;
  readonly slice: number;
  readonly portals: number;
}

/** A page that is open: what it asks for in each round. */
type OpenPage = (round: number) => Promise<void>;

const POLL_MS = 10_000;
const PORTAL_POLL_MS = 30_000;
/** As many requests a second as an installation of this size may have: 1000, over this many customers. */
const CONNECTIONS = 32;
const DELAY_MS = 32;
const BUSY_CUSTOMERS = 5000;
const WARM_UP_MS = 10_000;
const CPU_ROUNDS = 100;

const program = new Command('npm run lab -- console')
  .description('Measures the calls of the console, and the latency of clients while five consoles are open.')
  .addOption(new Option('--store <kind>', 'where the customers are').choices(['redis', 'sqlite']).default('redis'))
  .option('--customers <number>', 'customers, each with one key', parseCount, 100_000)
  .option('--turns <number>', 'turns with and without open consoles; 0: only the calls', parseCount, 10)
  .option('--slice <seconds>', 'length of a turn', parseCount, 20)
  .option(
    '--portals <number>',
    'measures only turns, with so many open pages of the portal, and no console',
    parseCount,
    0,
  )
  .parse();

exitOnSignals();
await run(program.opts<Options>());

async function run({ store: kind, customers, turns, slice, portals }: Options): Promise<void> {
  const programs = findPrograms(process.env);
  const pinning = choosePinning(programs.taskset, allowedCpus());
  await using surroundings = await startSurroundings(programs, pinning, process.env.PATH);
  const { redis, workspace } = surroundings;
  const url = kind === 'redis' ? redis.url : `sqlite:${join(workspace.folder, 'store.sqlite')}`;
  const startedMs = performance.now();
  const filled = await fill(url, customers);
  console.error(`${customers} customers written in ${((performance.now() - startedMs) / 1000).toFixed(0)} s`);
  const portalPort = await freePort();
  const config = join(workspace.folder, 'gateway.yaml');
  const section = `portal: { host: 127.0.0.1, port: ${portalPort}, public_url: 'http://127.0.0.1:${portalPort}' }`;
  writeFileSync(config, `${readFileSync('config/gateway.yaml', 'utf8')}\n${section}\n`);
  const {
    origin,
    adminOrigin: admin,
    process: { pid },
  } = await startTollgate(surroundings, { config, storeUrl: url, env: { TOLLGATE_ADMIN_TOKEN: TOKEN } });

  const comparison = { origin, filled, turns, sliceMs: slice * 1000 };
  if (portals > 0) {
    const portal = `http://127.0.0.1:${portalPort}`;
    const tokens = await Promise.all(filled.slice(0, portals).map(({ id }) => portalToken(admin, id)));
    const pages = tokens.map(
      (token): OpenPage =>
        async (round) => {
          await call(portal, PORTAL_POLL, token);
          if (round % 2 === 0) await call(portal, PORTAL_HISTORY, token);
        },
    );
    const cpuBefore = treeCpuMicros(pid);
    for (let round = 0; round < 6; round++) for (const page of pages) await page(round);
    const cpuMs = (treeCpuMicros(pid) - cpuBefore) / 6 / 1000;
    console.log(`\nCPU of the gateway for ${portals} pages of the portal, every 30 s: ${cpuMs.toFixed(1)} ms`);
    return await compareTurns(surroundings, { ...comparison, pages, pollMs: PORTAL_POLL_MS });
  }
  const calls = [];
  for (const path of PAGE_CALLS) calls.push(await timeCall(admin, path));
  console.log(
    `\n## Calls, ms\n\n${renderTable({
      head: ['call', 'first', 'median', 'slowest'],
      rows: calls.map(({ path, firstMs, medianMs, worstMs }) => [
        path,
        ...[firstMs, medianMs, worstMs].map((ms) => ms.toFixed(1)),
      ]),
    })}`,
  );
  const walks = [];
  for (const path of WALKS) walks.push(await timeWalk(admin, path));
  console.log(
    `\n## Lists to their end, ms\n\n${renderTable({
      head: ['list', 'first rows', 'whole', 'slowest call', 'calls', 'rows'],
      rows: walks.map(({ path, firstRowsMs, wholeMs, worstCallMs, calls, rows }) => [
        path,
        ...[firstRowsMs, wholeMs, worstCallMs].map((ms) => ms.toFixed(0)),
        String(calls),
        String(rows),
      ]),
    })}`,
  );
  const costs: (readonly [calls: string, ms: number])[] = [];
  for (const path of new Set(POLLS.flat())) costs.push([path, await cpuOf(admin, pid, [path])]);
  costs.push(['all five consoles, every 10 s', await cpuOf(admin, pid, POLLS.flat())]);
  console.log(
    `\n## CPU of the gateway, without clients\n\n${renderTable({
      head: ['calls', 'ms'],
      rows: costs.map(([calls, ms]) => [calls, ms.toFixed(1)]),
    })}`,
  );
  const pages = POLLS.map(
    (paths): OpenPage =>
      async () => {
        for (const path of paths) await call(admin, path);
      },
  );
  if (turns > 0) await compareTurns(surroundings, { ...comparison, pages, pollMs: POLL_MS });
}

/** CPU time of the gateway for one round of these calls, in ms. Includes what it does anyway meanwhile. */
async function cpuOf(admin: string, pid: number, paths: readonly string[]): Promise<number> {
  const before = treeCpuMicros(pid);
  for (let round = 0; round < CPU_ROUNDS; round++) for (const path of paths) await call(admin, path);
  return (treeCpuMicros(pid) - before) / CPU_ROUNDS / 1000;
}

async function fill(url: string, customers: number): Promise<FilledCustomer[]> {
  const store = await openStore(
    { url, keyPrefix: 'tollgate', timeoutMs: 60_000, usage: { hoursDays: 35, days: 400 } },
    {
      clock: systemClock,
      observer: { called: () => undefined, up: () => undefined },
      warn: (text) => console.error(text),
    },
  );
  const filled = await fillStore(store, customers);
  await store.close();
  return filled;
}

interface Comparison {
  readonly origin: string;
  readonly pages: readonly OpenPage[];
  /** How often each of them runs. */
  readonly pollMs: number;
  readonly filled: readonly FilledCustomer[];
  readonly turns: number;
  readonly sliceMs: number;
}

/** Alternates, so that both kinds of turn see the same machine. */
async function compareTurns(
  { workspace, programs, pinning }: Surroundings,
  { origin, pages, pollMs, filled, turns, sliceMs }: Comparison,
): Promise<void> {
  const file = join(workspace.folder, 'keys.txt');
  writeFileSync(
    file,
    filled
      .slice(0, BUSY_CUSTOMERS)
      .map(({ key }) => `${key}\n`)
      .join(''),
  );
  const wrk = command(pinning.loading, programs.wrk, []);
  const load = (durationMs: number, seed: number) =>
    runLoad({
      wrk,
      url: origin + LIST_PATH,
      connections: CONNECTIONS,
      durationMs,
      key: { file, seed, delayMs: DELAY_MS },
    });
  await load(WARM_UP_MS, 0);
  const p99s: Record<'without' | 'with', number[]> = { without: [], with: [] };
  for (let turn = 0; turn < turns; turn++) {
    for (const kind of turn % 2 === 0 ? (['without', 'with'] as const) : (['with', 'without'] as const)) {
      const stop = new AbortController();
      const open = kind === 'with' ? pages : [];
      const polling = open.map((page, at) => poll(page, (at * pollMs) / open.length, pollMs, stop.signal));
      const { p50, p99, requests, refused } = await load(sliceMs, turn + 1);
      stop.abort();
      await Promise.all(polling);
      p99s[kind].push(p99);
      console.error(
        `turn ${turn + 1} ${kind} open pages: p50 ${p50} µs, p99 ${p99} µs, ${requests} requests, ${refused} refused`,
      );
    }
  }
  const ratios = p99s.with.map((p99, turn) => p99 / (p99s.without[turn] ?? Number.NaN));
  console.log(
    `\n## p99 of clients, µs\n\n${renderTable({
      head: ['turns', 'without open pages', `with ${pages.length}`, 'ratio: median', 'lowest', 'highest'],
      rows: [
        [
          String(turns),
          ...[p99s.without, p99s.with].map((each) => median(each).toFixed(0)),
          ...[median(ratios), Math.min(...ratios), Math.max(...ratios)].map((ratio) => ratio.toFixed(2)),
        ],
      ],
    })}`,
  );
}

/** One open page: all its calls, one after the other, again and again. */
async function poll(page: OpenPage, delayMs: number, everyMs: number, signal: AbortSignal): Promise<void> {
  await setTimeout(delayMs, undefined, { signal }).catch(() => undefined);
  for (let round = 0; !signal.aborted; round++) {
    // A page shows the failure and asks again.
    await page(round).catch((error: unknown) => console.error(String(error)));
    await setTimeout(everyMs, undefined, { signal }).catch(() => undefined);
  }
}

function parseCount(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('must be a whole number');
  return Number(text);
}
