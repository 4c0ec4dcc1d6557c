/**
 * `npm run lab -- model`: has SPIN explore the models of the quota (docs/dev/model.md), two at a time. Fails if the correct
 * protocol violates a property, if a search was truncated, if a transition is never taken, or if a mutant survives.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { renderTable } from '../../bench/report.ts';
import { canInstall, install, onPath } from '../../test/support/programs.ts';
import { type PanReport, parsePanReport } from './pan-report.ts';
import { MUTANTS, type Property, SCENES, type Scene } from './runs.ts';

const AT_A_TIME = 2;
const MEMORY_MIB = 2000;
const MAX_DEPTH = 2_000_000;
const PAN_MACROS = ['SAFETY', 'NOREDUCE', 'NOFAIR', `MEMLIM=${MEMORY_MIB}`];
/** Breadth first: the counter-example is a shortest one. */
const MUTANT_PAN_MACROS = [...PAN_MACROS, 'BFS'];
const PROGRAMS = ['spin', 'gcc'];
/** gcc merely recommends the C library's headers. */
const PACKAGES = ['spin', 'gcc', 'libc6-dev'];

interface Run {
  readonly name: string;
  readonly scene: Scene;
  readonly mutant: string | undefined;
  readonly properties: readonly Property[];
}

interface Result extends PanReport {
  readonly run: Run;
  readonly seconds: number;
}

const execute = promisify(execFile);

process.exitCode = await verify();

async function verify(): Promise<number> {
  if (isMissing() && canInstall()) for (const name of PACKAGES) install({ name }, process.env);
  if (isMissing()) {
    console.error(
      `This needs the model checker SPIN and a C compiler: install Debian's packages ${PACKAGES.join(', ')}.`,
    );
    return 1;
  }
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-model-'));
  try {
    const results = await runAll(folder);
    console.log(`\n${renderTable(tableOf(results))}`);
    const faults = results.flatMap(faultsOf);
    for (const fault of faults) console.error(fault);
    if (faults.length === 0) {
      console.log('\nThe protocol keeps its properties in every reachable state, and every mutant is refuted.');
    }
    return faults.length === 0 ? 0 : 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function isMissing(): boolean {
  return PROGRAMS.some((name) => onPath([name], process.env) === undefined);
}

async function runAll(folder: string): Promise<Result[]> {
  const runs: Run[] = [
    ...SCENES.map((scene) => ({ name: scene.name, scene, mutant: undefined, properties: scene.properties })),
    ...MUTANTS.map(({ name, scene, property }) => ({ name, scene, mutant: name, properties: [property] })),
  ];
  const results: Result[] = [];
  const queue = [...runs.entries()];
  const work = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [index, run] = next;
      results[index] = await explore(run, mkdtempSync(join(folder, 'run-')));
      console.error(`${run.name}: ${outcomeOf(results[index])}, ${results[index].seconds.toFixed(1)} s`);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, work));
  return results;
}

async function explore(run: Run, cwd: string): Promise<Result> {
  const { scene, mutant, properties } = run;
  const startedMs = performance.now();
  const model = join(import.meta.dirname, scene.file);
  const checks = properties.map((property) => `CHECK_${property.toUpperCase()}`);
  const macros = [...scene.macros, ...checks, ...(mutant === undefined ? [] : [`MUTANT_${mutant}`, 'BREADTH_FIRST'])];
  await execute('spin', [...defined(macros), '-a', model], { cwd });
  // A mutant is refuted sooner than the compiler optimises.
  const flags = mutant === undefined ? ['-O2', ...defined(PAN_MACROS)] : ['-O0', ...defined(MUTANT_PAN_MACROS)];
  await execute('gcc', [...flags, '-w', '-o', 'pan', 'pan.c'], { cwd });
  // Its exit code says no more than its report.
  const { stdout, stderr } = await execute('./pan', [`-m${MAX_DEPTH}`], { cwd }).catch(
    (error: { stdout?: string; stderr?: string }) => ({ stdout: error.stdout ?? '', stderr: error.stderr ?? '' }),
  );
  return { run, ...parsePanReport(stdout + stderr), seconds: (performance.now() - startedMs) / 1000 };
}

function defined(macros: readonly string[]): string[] {
  return macros.map((macro) => `-D${macro}`);
}

function outcomeOf({ run, violation, truncation }: Result): string {
  if (violation !== undefined) return run.mutant === undefined ? `violated: ${violation}` : `refuted: ${violation}`;
  return truncation === undefined ? 'holds' : `truncated: ${truncation}`;
}

function tableOf(results: readonly Result[]) {
  return {
    head: ['run', 'outcome', 'states', 'depth', 'seconds'],
    rows: results.map((result) => [
      result.run.name,
      outcomeOf(result),
      result.states.toLocaleString('en'),
      result.depth.toLocaleString('en'),
      result.seconds.toFixed(1),
    ]),
  };
}

function faultsOf(result: Result): string[] {
  const { run, violation, truncation, unreached } = result;
  if (run.mutant !== undefined) {
    const isRefuted = violation !== undefined && run.properties.some((property) => property === violation);
    return isRefuted ? [] : [`The mutant ${run.name} survives: ${outcomeOf(result)}.`];
  }
  if (violation !== undefined || truncation !== undefined) return [`The scene "${run.name}": ${outcomeOf(result)}.`];
  return unreached.map((place) => `The scene "${run.name}" never takes the transition at ${basename(place)}.`);
}
