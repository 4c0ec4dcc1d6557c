/** Entry point of the thread that parser.ts starts: runs one job and posts its result. */
import { parentPort, workerData } from 'node:worker_threads';
import { disclosedChanges, MAX_LISTED_CHANGES, uncomparedSecrets } from './config-changes.ts';
import { parseConfig } from './load.ts';
import type { Comparison, ParserJob, ParserResult } from './parser.ts';
import { previewScope } from './preview-scope.ts';
import { ConfigError } from './problems.ts';

async function run(job: ParserJob): Promise<ParserResult> {
  const { file, content, environment } = job;
  try {
    const value = job.kind === 'parse' ? await parseConfig(file, content, environment) : await compare(job);
    return { kind: 'done', value };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { kind: 'refused', problems: error.problems, source: error.source };
  }
}

async function compare(job: ParserJob & { kind: 'compare' }): Promise<Comparison> {
  const { file, content, environment, folder, running } = job;
  const next = await parseConfig(file, content, environment, { folder, scope: previewScope(running) });
  const changes = disclosedChanges(running, next);
  return {
    hash: next.hash,
    changes: changes.slice(0, MAX_LISTED_CHANGES),
    changesTotal: changes.length,
    needsRestart: changes.some(({ takesEffect }) => takesEffect === 'restart'),
    uncompared: uncomparedSecrets(running, next),
    limits: { plans: next.plans, formerPlans: next.formerPlans, overrides: next.overrides },
  };
}

parentPort?.postMessage(await run(workerData));
