import type { Allowances } from './check.ts';

let current: Allowances = {};

/** What the test that runs may do to the store, beyond what the guarantee covers. Until the next test. */
export function allowInTraces(allowances: Allowances): void {
  current = allowances;
}

export function takeAllowances(): Allowances {
  const taken = current;
  current = {};
  return taken;
}
