import type { Scheduled } from '../../base/clock.ts';
import { type HealthCheckOptions, sendHealthCheck } from './health-check.ts';

/** Consecutive checks that take the upstream out of service, and that put it back. */
const FAILURES = 3;
const SUCCESSES = 2;

interface HealthChecksOptions extends HealthCheckOptions {
  /** Called when {@link HealthChecks.isFailing} has changed. */
  changed(): void;
}

/**
 * Active health checks of one upstream: a GET at intervals, each on a new connection, so that it also tests whether
 * connections are accepted. Any 2xx in time is a success. Until checks fail, the upstream counts as healthy.
 */
export class HealthChecks {
  readonly #options: HealthChecksOptions;
  isFailing = false;
  /** What was wrong with the last failed check. */
  fault: string | undefined;
  /** Consecutive checks whose result contradicts `isFailing`. */
  #contradicting = 0;
  #timer: Scheduled | undefined;
  #cancelCheck: (() => void) | undefined;

  constructor(options: HealthChecksOptions) {
    this.#options = options;
    this.#check();
  }

  close(): void {
    this.#cancelCheck?.();
    this.#timer?.cancel();
  }

  #check(): void {
    const { intervalMs, scheduler } = this.#options;
    this.#cancelCheck = sendHealthCheck(this.#options, (fault) => {
      this.#record(fault);
      this.#timer = scheduler.after(intervalMs, () => this.#check());
    });
  }

  #record(fault: string | undefined): void {
    if (fault !== undefined) this.fault = fault;
    if (this.isFailing === (fault !== undefined)) {
      this.#contradicting = 0;
      return;
    }
    if (++this.#contradicting < (this.isFailing ? SUCCESSES : FAILURES)) return;
    this.#contradicting = 0;
    this.isFailing = !this.isFailing;
    this.#options.changed();
  }
}
