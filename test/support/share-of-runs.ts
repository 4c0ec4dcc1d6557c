import { inject } from 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    /** Of the random cases this suite tries: a twentieth in `npm test`, the others in `npm run test:faults`. */
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

/**
 * Returns the enumerated cases that this suite tries: in `npm test` every twentieth, counted from the first, and the
 * last; all of them in `npm run test:faults`.
 */
export function shareOfCases<T>(cases: readonly T[]): readonly T[] {
  const share = inject('shareOfRuns');
  const step = share < 0.5 ? Math.round(1 / share) : 1;
  return cases.filter((_, index) => index % step === 0 || index === cases.length - 1);
}

/** Returns those of the numbers 1 to `last` that this suite tries, as {@link shareOfCases}. */
export function shareOfNumbers(last: number): readonly number[] {
  return shareOfCases(Array.from({ length: last }, (_, index) => index + 1));
}
