import type { Clock, Scheduled, Scheduler } from '../../src/base/clock.ts';
import type { VirtualTime } from './virtual-time.ts';

export interface MachineOptions {
  readonly time: VirtualTime;
  /** Milliseconds of its clocks in one of true time. */
  readonly rate: number;
  readonly monotonicOriginMs: number;
  readonly wallOriginMs: number;
  /** How much later than asked for a timer runs. */
  readonly timerLatenessMs: () => number;
}

/** Which clock stands still while the machine is stopped. */
export type StoppedClock = 'none' | 'monotonic' | 'wall';

/** What one gateway runs on: clocks that drift, jump and stop, and a process that may be stopped or die. */
export class Machine implements Clock, Scheduler {
  readonly #options: MachineOptions;
  #stoppedUntilMs = 0;
  #lostMonotonicMs = 0;
  #wallShiftMs = 0;
  #isDead = false;

  constructor(options: MachineOptions) {
    this.#options = options;
  }

  /** Milliseconds of its clocks in one of true time. */
  get rate(): number {
    return this.#options.rate;
  }

  get isStopped(): boolean {
    return this.#options.time.nowMs < this.#stoppedUntilMs;
  }

  monotonicMs(): number {
    const { time, rate, monotonicOriginMs } = this.#options;
    return monotonicOriginMs + (time.nowMs - this.#lostMonotonicMs) * rate;
  }

  nowMs(): number {
    const { time, rate, wallOriginMs } = this.#options;
    return wallOriginMs + this.#wallShiftMs + time.nowMs * rate;
  }

  /** Nothing runs on it for a while; what would have run does so then. Ignored while it is stopped already. */
  stop(durationMs: number, clock: StoppedClock): void {
    const { time, rate } = this.#options;
    if (time.nowMs < this.#stoppedUntilMs) return;
    this.#stoppedUntilMs = time.nowMs + durationMs;
    // Nobody can look at the clocks before it goes on, so what they lose may be taken at once.
    if (clock === 'monotonic') this.#lostMonotonicMs += durationMs;
    if (clock === 'wall') this.#wallShiftMs -= durationMs * rate;
  }

  setWallClock(byMs: number): void {
    this.#wallShiftMs += byMs;
  }

  crash(): void {
    this.#isDead = true;
  }

  /** Now, or as soon as the machine goes on; never if it is dead by then. */
  run(action: () => void): void {
    const { time } = this.#options;
    if (this.#isDead) return;
    if (time.nowMs >= this.#stoppedUntilMs) action();
    else time.at(this.#stoppedUntilMs, () => this.run(action));
  }

  /** Nothing is read late here but what a stopped process misses. */
  deadline(delayMs: number, action: () => void): Scheduled {
    return this.after(delayMs, action);
  }

  after(delayMs: number, action: () => void): Scheduled {
    const { timerLatenessMs } = this.#options;
    const dueMs = this.monotonicMs() + Math.max(0, delayMs) + timerLatenessMs();
    let planned: Scheduled;
    const plan = () => {
      planned = this.#options.time.in((dueMs - this.monotonicMs()) / this.#options.rate, () => this.run(look));
    };
    let isCancelled = false;
    const look = () => {
      if (isCancelled) return;
      // The clock may have stood still; the millionth covers rounding.
      if (dueMs - this.monotonicMs() > 1e-6) plan();
      else action();
    };
    plan();
    return {
      cancel: () => {
        isCancelled = true;
        planned.cancel();
      },
    };
  }
}
