/**
 * `npm run lab -- evidence`: runs what docs/dev/evidence.md counts, and writes the counts into docs/dev/evidence.json and the
 * page. With names of parts as arguments, only these run; the counts of the others stay. Fails if anything fails, and then
 * keeps the counts of that part as they were.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { EVIDENCE_FILE, type Evidence, PROMISES, readEvidence, type TestEvidence } from './guarantees.ts';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const OUT = `${ROOT}var/evidence`;
const FUZZ_SECONDS = 600;

interface Part {
  /** Returns the evidence with what this part found. @throws Error if it fails. */
  readonly run: (evidence: Evidence) => Evidence;
}

/** Whether `npm run test:faults` runs all cases of this file, and `npm test` none. */
const isOfFaults = (file: string) => file.startsWith('test/faults/') || file.endsWith('.load.test.ts');
const citedByTests = () =>
  [...new Set(PROMISES.flatMap(({ tests }) => Object.keys(tests)))].filter((file) => !isOfFaults(file));

const PARTS: Readonly<Record<string, Part>> = {
  tests: {
    run: (evidence) => withTests(evidence, runTests('vitest.evidence.config.ts', citedByTests())),
  },
  faults: {
    run: (evidence) => {
      const results = runTests('vitest.faults.config.ts', []);
      const traces: Record<string, number> = {};
      for (const { meta } of results) {
        for (const [name, count] of Object.entries(meta.traces ?? {})) traces[name] = (traces[name] ?? 0) + count;
      }
      const counted = results.filter(({ file }) => isOfFaults(file));
      return { ...withTests(evidence, counted), traces };
    },
  },
  model: {
    run: (evidence) => {
      const startedMs = performance.now();
      const rows = [...lab('model').matchAll(/^\| (.*?) *\| +(holds|refuted)[^|]*\| +([\d,]+) \|/gm)];
      const states = rows.reduce((sum, [, , , count = '']) => sum + Number(count.replaceAll(',', '')), 0);
      const mutants = rows.filter(([, , outcome]) => outcome === 'refuted').length;
      const seconds = Math.round((performance.now() - startedMs) / 1000);
      return { ...evidence, model: { searches: rows.length, states, mutants, seconds } };
    },
  },
  fuzz: {
    run: (evidence) => {
      const output = lab('fuzz', '--seconds', String(FUZZ_SECONDS));
      const [, seed] = /^seed (\d+)/m.exec(output) ?? [];
      const [, cases, findings] = /^(\d+) cases, (\d+) findings/m.exec(output) ?? [];
      const before = evidence.fuzz ?? { runs: 0, cases: 0, seconds: 0, findings: 0, seeds: [] };
      const fuzz = {
        runs: before.runs + 1,
        cases: before.cases + Number(cases),
        seconds: before.seconds + FUZZ_SECONDS,
        findings: before.findings + Number(findings),
        seeds: [...before.seeds, Number(seed)],
      };
      return { ...evidence, fuzz };
    },
  },
  servers: {
    run: (evidence) => ({ ...evidence, servers: run('npm', 'run', '-s', 'test:servers').trim().split('\n') }),
  },
  'over-admission': {
    run: (evidence) => ({ ...evidence, overAdmission: lab('over-admission').trim() }),
  },
};

interface TestResult {
  readonly file: string;
  readonly title: string;
  readonly seconds: number;
  readonly meta: { readonly cases?: number; readonly traces?: Readonly<Record<string, number>> };
}

function runTests(config: string, files: readonly string[]): TestResult[] {
  const report = `${OUT}/${config}.json`;
  const args = ['--config', config, '--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  const { status } = spawnSync('npx', ['vitest', 'run', ...args, ...files], { cwd: ROOT, stdio: 'inherit' });
  if (status !== 0) throw new Error(`tests failed (${config})`);
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as {
    testResults: {
      name: string;
      assertionResults: { title: string; status: string; duration?: number; meta: TestResult['meta'] }[];
    }[];
  };
  return testResults.flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter(({ status }) => status === 'passed')
      .map(({ title, duration = 0, meta }) => ({
        file: name.slice(ROOT.length),
        title,
        seconds: duration / 1000,
        meta,
      })),
  );
}

/** Counts the results by the titles in the source, whose placeholders stand for anything. */
function withTests(evidence: Evidence, results: readonly TestResult[]): Evidence {
  const tests: Record<string, Record<string, TestEvidence>> = structuredClone(evidence.tests);
  for (const { tests: named } of PROMISES) {
    for (const [file, titles] of Object.entries(named)) {
      for (const title of titles) {
        const pattern = new RegExp(
          `^${title
            .split(/%[a-z]|\$\w+/)
            .map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
            .join('.*')}$`,
        );
        const found = results.filter((each) => each.file === file && pattern.test(each.title));
        if (found.length === 0) continue;
        const sum = (of: (each: TestResult) => number) => found.reduce((total, each) => total + of(each), 0);
        tests[file] ??= {};
        tests[file][title] = {
          tests: found.length,
          cases: sum(({ meta }) => meta.cases ?? 0),
          seconds: Math.round(10 * sum(({ seconds }) => seconds)) / 10,
        };
      }
    }
  }
  return { ...evidence, tests };
}

function run(program: string, ...args: string[]): string {
  return execFileSync(program, args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
}

function lab(...args: string[]): string {
  return run('npm', 'run', '-s', 'lab', '--', ...args);
}

mkdirSync(OUT, { recursive: true });
const { version } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8'));
const commit = run('git', 'rev-parse', '--short=10', 'HEAD').trim();
if (run('git', 'status', '--porcelain', '--', 'src', 'test', 'tools') !== '') {
  throw new Error(`commit your changes first: the evidence names the commit that it is about (${commit})`);
}
const names = process.argv.slice(2);
for (const name of names.length > 0 ? names : Object.keys(PARTS)) {
  const part = PARTS[name];
  if (part === undefined) throw new Error(`there is no part ${name}: ${Object.keys(PARTS).join(', ')}`);
  try {
    const evidence = part.run(readEvidence());
    const date = new Date().toISOString().slice(0, 10);
    const runs = { ...evidence.runs, [name]: { date, version, commit } };
    writeFileSync(EVIDENCE_FILE, `${JSON.stringify({ ...evidence, runs }, undefined, 2)}\n`);
    run('npx', 'biome', 'format', '--write', EVIDENCE_FILE);
  } catch (error) {
    console.error(`${name}: ${error instanceof Error ? error.message : error}`);
    process.exitCode = 1;
  }
}
run('npm', 'run', '-s', 'docs');
