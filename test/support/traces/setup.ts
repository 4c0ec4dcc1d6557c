/** Traces each test of the suite and replays its traces: a test fails if a rule was violated while it ran. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach } from 'vitest';
import { takeAllowances } from './allowances.ts';
import { checkTraces, type TraceCounts } from './check.ts';
import { TRACE_FOLDER } from './environment.ts';
import { readTraces } from './events.ts';

declare module 'vitest' {
  interface TaskMeta {
    /** What the traces of this test had. */
    traces?: TraceCounts;
  }
}

beforeAll(async () => {
  // Not before the test file has replaced the modules that it wants replaced.
  const { recordTraces } = await import('./record.ts');
  recordTraces(() => process.env[TRACE_FOLDER]);
});

beforeEach(() => {
  process.env[TRACE_FOLDER] = mkdtempSync(join(tmpdir(), 'tollgate-traces-'));
});

afterEach(({ task }) => {
  const folder = process.env[TRACE_FOLDER] ?? '';
  delete process.env[TRACE_FOLDER];
  const { violation, counts } = checkTraces(readTraces(folder), takeAllowances());
  task.meta.traces = counts;
  if (violation === undefined) {
    rmSync(folder, { recursive: true, force: true });
    return;
  }
  const { rule, customer, text, event } = violation;
  throw new Error(`rule "${rule}", customer ${customer}: ${text}. Traces: ${folder}. ${JSON.stringify(event)}`);
});
