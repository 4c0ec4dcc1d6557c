import { Periodic } from '../../base/periodic.ts';
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
  readonly #checks: Periodic;
  #cancelCheck: (() => void) | undefined;

  constructor(options: HealthChecksOptions) {
    this.#options = options;
    this.#checks = new Periodic(options.scheduler, async () => {
      this.#record(await this.#check());
      return options.intervalMs;
    });
    void this.#checks.run();
  }

  close(): void {
    this.#cancelCheck?.();
    void this.#checks.close();
  }

  /** Resolves to what is wrong. Never resolves after it was cancelled. */
  #check(): Promise<string | undefined> {
    return new Promise((resolve) => {
      this.#cancelCheck = sendHealthCheck(this.#options, resolve);
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
