import type { Scheduled, Scheduler } from '../clock.ts';
import type { Connect } from './connect.ts';
import { healthCheckTimeoutMs, sendHealthCheck } from './health-check.ts';

/** Of the configuration's `upstream.health_check`. */
export interface HealthCheckConfig {
  /** Origin-form, complete: the base path of the upstream is not put before it. */
  readonly path: string;
  readonly intervalMs: number;
}

/** In a row, until the upstream is out of service, and until it is back. */
const FAILURES = 3;
const SUCCESSES = 2;

export interface HealthChecksOptions extends HealthCheckConfig {
  readonly connect: Connect;
  readonly authority: string;
  readonly maxHeaderBytes: number;
  readonly scheduler: Scheduler;
  /** {@link HealthChecks.isFailing} has changed. */
  changed(): void;
}

/**
 * Active health of one upstream: a GET now and then, on a connection of its own each time, so that it also tells
 * whether connections are accepted. Any 2xx within the time is good. Until it is known better, the upstream is healthy.
 */
export class HealthChecks {
  readonly #options: HealthChecksOptions;
  #isFailing = false;
  #fault: string | undefined;
  /** In a row, of checks that say otherwise than `#isFailing`. */
  #contrary = 0;
  #timer: Scheduled | undefined;
  #endCheck: (() => void) | undefined;

  constructor(options: HealthChecksOptions) {
    this.#options = options;
    this.#check();
  }

  get isFailing(): boolean {
    return this.#isFailing;
  }

  /** What was wrong with the last bad one. */
  get fault(): string | undefined {
    return this.#fault;
  }

  close(): void {
    this.#endCheck?.();
    this.#timer?.cancel();
  }

  #check(): void {
    const { path, intervalMs, connect, authority, maxHeaderBytes, scheduler } = this.#options;
    const check = { path, connect, authority, maxHeaderBytes, timeoutMs: healthCheckTimeoutMs(intervalMs), scheduler };
    this.#endCheck = sendHealthCheck(check, (fault) => {
      this.#learn(fault);
      this.#timer = scheduler.after(intervalMs, () => this.#check());
    });
  }

  #learn(fault: string | undefined): void {
    if (fault !== undefined) this.#fault = fault;
    if (this.#isFailing === (fault !== undefined)) {
      this.#contrary = 0;
      return;
    }
    if (++this.#contrary < (this.#isFailing ? SUCCESSES : FAILURES)) return;
    this.#contrary = 0;
    this.#isFailing = !this.#isFailing;
    this.#options.changed();
  }
}
