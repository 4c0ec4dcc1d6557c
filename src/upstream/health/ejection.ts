/**
 * Passive health of one upstream, judged by the outcome of its requests and connections.
 *
 * - `unreachable`: three connections in a row failed, and none is open. Nothing could be sent, so ejection loses
 *   nothing. It may eject even the last upstream in service, and then acts as a circuit breaker.
 * - `failing`: five requests in a row got no usable response (late, reset, not HTTP, 502, 503 or 504), or three
 *   connections in a row failed while others are open. The upstream may still be of use, so it is ejected only while
 *   the other upstreams can do without it.
 *
 * After a delay, the gateway probes the upstream by opening a connection. If that succeeds, the upstream is back in
 * service, on probation: a failure before its first success ejects it again, and each ejection for the same reason lasts
 * twice as long as the last one, up to a maximum. Five successful responses in a row end the probation.
 */
import type { Scheduled, Scheduler } from '../../base/clock.ts';

export type EjectionReason = 'unreachable' | 'failing';

const FAILED_REQUESTS = 5;
const FAILED_CONNECTIONS = 3;
const SUCCESSES_TO_FORGET = 5;
const FIRST_MS = { unreachable: 250, failing: 5_000 } as const satisfies Record<EjectionReason, number>;
const MAX_MS = { unreachable: 5_000, failing: 300_000 } as const satisfies Record<EjectionReason, number>;

interface EjectionOptions {
  readonly scheduler: Pick<Scheduler, 'after'>;
  /** Returns whether the other upstreams can do without this one. */
  canBeSpared(): boolean;
  /** Returns whether no connection to the upstream is open. */
  hasNoConnection(): boolean;
  /** Starts a connection. Its outcome is passed to {@link Ejection.connected} or {@link Ejection.connectFailed}. */
  probe(): void;
  /** Called when {@link Ejection.reason} has changed. */
  changed(): void;
}

export class Ejection {
  readonly #options: EjectionOptions;
  /** Why the upstream is ejected; undefined if it is not. */
  reason: EjectionReason | undefined;
  #lastReason: EjectionReason | undefined;
  /** All three count consecutive events. */
  #failedRequests = 0;
  #failedConnections = 0;
  #successes = 0;
  /** Ejections and failed probes since the last probation ended or the reason changed. */
  #attempts = 0;
  /** No failure is recorded: the only check that most requests make. */
  #hasNoFailure = true;
  #timer: Scheduled | undefined;
  /** Whether the probe of this ejection has started. */
  #isProbed = false;

  constructor(options: EjectionOptions) {
    this.#options = options;
  }

  /** Records a complete, usable response. Called for each one. */
  succeeded(): void {
    if (this.#hasNoFailure || this.reason !== undefined) return;
    this.#failedRequests = 0;
    this.#failedConnections = 0;
    if (this.#attempts > 0 && ++this.#successes < SUCCESSES_TO_FORGET) return;
    this.#attempts = 0;
    this.#hasNoFailure = true;
  }

  /** Records that a request got no usable response. */
  failed(): void {
    if (this.reason !== undefined) return;
    this.#recordFailure();
    if (++this.#failedRequests >= FAILED_REQUESTS && this.#options.canBeSpared()) this.#eject('failing');
  }

  connected(): void {
    if (this.reason === undefined) this.#failedConnections = 0;
    else if (this.#isProbed || this.reason === 'unreachable') this.readmit();
  }

  connectFailed(): void {
    if (this.reason !== undefined) {
      if (this.#isProbed) this.#scheduleProbe(this.reason);
      return;
    }
    this.#recordFailure();
    if (++this.#failedConnections < FAILED_CONNECTIONS) return;
    if (this.#options.hasNoConnection()) this.#eject('unreachable');
    else if (this.#options.canBeSpared()) this.#eject('failing');
  }

  /** Puts the upstream back into service, on probation. */
  readmit(): void {
    if (this.reason === undefined) return;
    this.close();
    this.reason = undefined;
    this.#failedRequests = FAILED_REQUESTS - 1;
    this.#failedConnections = FAILED_CONNECTIONS - 1;
    this.#options.changed();
  }

  /** Cancels the next probe. */
  close(): void {
    this.#timer?.cancel();
    this.#isProbed = false;
  }

  #recordFailure(): void {
    this.#hasNoFailure = false;
    this.#successes = 0;
  }

  #eject(reason: EjectionReason): void {
    if (reason !== this.#lastReason) this.#attempts = 0;
    this.reason = reason;
    this.#lastReason = reason;
    this.#scheduleProbe(reason);
    this.#options.changed();
  }

  #scheduleProbe(reason: EjectionReason): void {
    const delayMs = Math.min(FIRST_MS[reason] * 2 ** this.#attempts++, MAX_MS[reason]);
    this.#isProbed = false;
    this.#timer = this.#options.scheduler.after(delayMs, () => {
      this.#isProbed = true;
      this.#options.probe();
    });
  }
}
