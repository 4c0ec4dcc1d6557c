/** Entry point of the thread that parser.ts starts: runs one job and posts its result. */
import { parentPort, workerData } from 'node:worker_threads';
import type { Config } from './config.ts';
import { type DisclosedConfig, disclosedChanges, MAX_LISTED_CHANGES, uncomparedSecrets } from './config-changes.ts';
import { parseConfig } from './load.ts';
import type { Comparison, ParserJob, ParserResult } from './parser.ts';
import { previewScope } from './preview-scope.ts';
import { ConfigError } from './problems.ts';

async function run({ file, content, environment, folder, running }: ParserJob): Promise<ParserResult> {
  try {
    const scope = running && previewScope(running);
    const config = await parseConfig(file, content, environment, { folder, scope });
    return { kind: 'done', value: running ? compare(running, config) : config };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { kind: 'refused', problems: error.problems, source: error.source };
  }
}

function compare(running: DisclosedConfig, next: Config): Comparison {
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
