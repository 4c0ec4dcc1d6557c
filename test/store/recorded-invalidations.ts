import type { Invalidation, Invalidations } from '../../src/store/invalidations.ts';

/** Everything that was pushed since it was made, and when. */
export class RecordedInvalidations {
  readonly all: Invalidation[] = [];
  readonly stop: () => void;
  #waiting: (() => void)[] = [];

  constructor(invalidations: Invalidations) {
    this.stop = invalidations.subscribe((invalidation) => {
      this.all.push(invalidation);
      for (const wake of this.#waiting.splice(0)) wake();
    });
  }

  /** Resolves once so many were pushed, to all of them. */
  async atLeast(count: number): Promise<readonly Invalidation[]> {
    while (this.all.length < count) await new Promise<void>((wake) => this.#waiting.push(wake));
    return this.all;
  }
}
