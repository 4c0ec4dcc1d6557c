import { inject } from 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    /** The part of the random cases that this suite tries: a quarter in `npm test`, the others in `npm run test:faults`. */
    shareOfRuns: number;
  }
}

/** Returns how many of `runs` random cases this suite tries, at least one. */
export function shareOfRuns(runs: number): number {
  return Math.ceil(runs * inject('shareOfRuns'));
}
