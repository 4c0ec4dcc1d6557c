import type { Clock } from '../../../src/base/clock.ts';

/** Time that passes when a test says so; wall time can be set apart from it. */
export class HeldClock implements Clock {
  wallMs = Date.UTC(2030, 0, 1);
  #monotonicMs = 5000;

  nowMs(): number {
    return this.wallMs;
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  advance(ms: number): void {
    this.wallMs += ms;
    this.#monotonicMs += ms;
  }
}
