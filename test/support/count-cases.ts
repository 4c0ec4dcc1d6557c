/** Notes in each test's result how many cases fast-check tried, and from which seeds. For `npm run lab -- evidence` alone. */
import fc, { type RunDetails } from 'fast-check';
import { TestRunner } from 'vitest';

declare module 'vitest' {
  interface TaskMeta {
    cases?: number;
    seeds?: number[];
  }
}

fc.configureGlobal({
  ...fc.readConfigureGlobal(),
  reporter: (run) => {
    note(run);
    if (run.failed) throw new Error(fc.defaultReportMessage(run));
  },
});

function note({ numRuns, seed }: RunDetails<unknown>): void {
  const meta = TestRunner.getCurrentTest()?.meta;
  if (meta === undefined) return;
  meta.cases = (meta.cases ?? 0) + numRuns;
  meta.seeds = [...(meta.seeds ?? []), seed];
}
