import { appendFileSync } from 'node:fs';
import { inject } from 'vitest';

/** Adds to what the run says at its end; see tally-report.ts. */
export function countTried(cases: number): void {
  appendFileSync(inject('httpTallyFile'), `${cases}\n`);
}
