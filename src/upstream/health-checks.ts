import type { Scheduled, Scheduler } from '../clock.ts';
import type { Connect } from './connect.ts';
import { UpstreamConnection } from './upstream-connection.ts';

/** Of the configuration's `upstream.health_check`. */
export interface HealthCheckConfig {
  /** Origin-form, complete: the base path of the upstream is not put before it. */
  readonly path: string;
  readonly intervalMs: number;
}

/** In a row, until the upstream is out of service, and until it is back. */
const FAILURES = 3;
const SUCCESSES = 2;
const LONGEST_WAIT_MS = 2_000;

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
  readonly #waitMs: number;
  readonly #head: string;
  #isFailing = false;
  #fault: string | undefined;
  /** In a row, of checks that say otherwise than `#isFailing`. */
  #contrary = 0;
  #timer: Scheduled | undefined;
  #endCheck: (() => void) | undefined;

  constructor(options: HealthChecksOptions) {
    this.#options = options;
    this.#waitMs = Math.min(options.intervalMs, LONGEST_WAIT_MS);
    const fields = `Host: ${options.authority}\r\nUser-Agent: tollgate-health-check\r\nConnection: close\r\n`;
    this.#head = `GET ${options.path} HTTP/1.1\r\n${fields}\r\n`;
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
    const { connect, maxHeaderBytes, scheduler } = this.#options;
    const head = this.#head;
    let isOver = false;
    let isSent = false;
    const end = (fault: string | undefined): void => {
      if (isOver) return;
      this.#endCheck?.();
      this.#learn(fault);
      this.#timer = scheduler.after(this.#options.intervalMs, () => this.#check());
    };
    this.#endCheck = () => {
      isOver = true;
      deadline.cancel();
      connection.destroy();
    };
    const deadline = scheduler.deadline(this.#waitMs, () => end(`no answer within ${this.#waitMs} ms`));
    const judge = (status: number): void => end(status >= 200 && status <= 299 ? undefined : `status ${status}`);
    const socket = connect({
      onConnected() {
        connection.opened();
        isSent = true;
        connection.send(head, false, exchange);
      },
      onBytes: (bytes, length) => connection.receive(bytes, length),
    });
    const exchange = {
      onLeaving: () => true,
      onHead: judge,
      onContent() {},
      onPause() {},
      onError: (error: unknown) => end(error instanceof Error ? error.message : String(error)),
    };
    let reason = 'no connection';
    socket.once('error', (error) => {
      reason = error.message;
    });
    const connection = new UpstreamConnection(socket, maxHeaderBytes, {
      onFree() {},
      onGone() {
        if (!isSent) end(reason); // afterwards the exchange is told, and knows more
      },
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
