import type { Clock } from './clock.ts';
import { LruMap } from './lru-map.ts';

/** Rate-limits reports, such as log lines, per id. Tracks at most `ids` ids; an evicted one may be reported early. */
export class Throttle {
  readonly #clock: Clock;
  readonly #everyMs: number;
  readonly #silentUntilMs: LruMap<string, number>;

  constructor(clock: Clock, everyMs: number, ids: number) {
    this.#clock = clock;
    this.#everyMs = everyMs;
    this.#silentUntilMs = new LruMap(ids);
  }

  /** Returns true the first time, then not again for this id until `everyMs` have passed. */
  isDue(id: string): boolean {
    const nowMs = this.#clock.monotonicMs();
    const silentUntilMs = this.#silentUntilMs.get(id);
    if (silentUntilMs !== undefined && nowMs < silentUntilMs) return false;
    this.#silentUntilMs.set(id, nowMs + this.#everyMs);
    return true;
  }
}
