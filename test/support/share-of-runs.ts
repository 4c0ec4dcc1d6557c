import { inject } from 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    /** The part of the random cases that this suite tries: a tenth in `npm test`, the others in `npm run test:faults`. */
    shareOfRuns: number;
  }
}

/**
 * Returns how many of `runs` random cases this suite tries, but no fewer than `atLeast`: where a test also counts how many
 * cases reach a limit, too few cases would miss that count by chance.
 */
export function shareOfRuns(runs: number, atLeast = 1): number {
  return Math.ceil(Math.max(atLeast, runs * inject('shareOfRuns')));
}
