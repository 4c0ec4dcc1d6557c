/**
 * Passive health of one upstream: judged by what becomes of requests and connections.
 *
 * - `unreachable`: three connections in a row could not be made, and none stands. Nothing could be sent, so nothing is
 *   lost by not trying: this may take the last upstream out of service (which makes a circuit breaker of it).
 * - `failing`: five requests in a row got no usable answer (late, reset, not HTTP, 502, 503 or 504), or connections
 *   fail while others stand. Such an upstream may still be of use, so it goes only while the others can do without it.
 *
 * Its time over, it is probed by a connection, which costs no caller anything. If that stands, it is back on probation:
 * the next failure takes it out again, for twice the time. Five good answers in a row end the probation.
 */
import type { Scheduled, Scheduler } from '../clock.ts';

export type EjectionReason = 'unreachable' | 'failing';

const FAILED_REQUESTS = 5;
const FAILED_CONNECTIONS = 3;
const SUCCESSES_TO_FORGET = 5;
const FIRST_MS = { unreachable: 250, failing: 5_000 } as const satisfies Record<EjectionReason, number>;
const LONGEST_MS = { unreachable: 5_000, failing: 300_000 } as const satisfies Record<EjectionReason, number>;

export interface EjectionOptions {
  readonly scheduler: Pick<Scheduler, 'after'>;
  /** Whether the others can do without it. */
  canBeSpared(): boolean;
  /** Whether no connection to it stands. */
  isCutOff(): boolean;
  /** Begins a connection, whose fate is told by {@link Ejection.connected} or {@link Ejection.connectFailed}. */
  probe(): void;
  /** {@link Ejection.reason} has changed. */
  changed(): void;
}

export class Ejection {
  readonly #options: EjectionOptions;
  #reason: EjectionReason | undefined;
  #lastReason: EjectionReason | undefined;
  /** In a row, all three. */
  #failedRequests = 0;
  #failedConnections = 0;
  #successes = 0;
  /** Times that it was ejected or probed in vain since it was last trusted. */
  #times = 0;
  /** Nothing is held against it: what most requests look at only. */
  #isSpotless = true;
  #timer: Scheduled | undefined;
  #isProbed = false;

  constructor(options: EjectionOptions) {
    this.#options = options;
  }

  /** Why it is out of service; undefined while it is not. */
  get reason(): EjectionReason | undefined {
    return this.#reason;
  }

  /** A request got a whole answer. Called for each. */
  succeeded(): void {
    if (this.#isSpotless || this.#reason !== undefined) return;
    this.#failedRequests = 0;
    this.#failedConnections = 0;
    if (this.#times > 0 && ++this.#successes < SUCCESSES_TO_FORGET) return;
    this.#times = 0;
    this.#isSpotless = true;
  }

  /** A request got no usable answer. */
  failed(): void {
    if (this.#reason !== undefined) return;
    this.#blemish();
    if (++this.#failedRequests >= FAILED_REQUESTS && this.#options.canBeSpared()) this.#eject('failing');
  }

  connected(): void {
    if (this.#reason === undefined) this.#failedConnections = 0;
    else if (this.#isProbed || this.#reason === 'unreachable') this.readmit();
  }

  connectFailed(): void {
    if (this.#reason !== undefined) {
      if (this.#isProbed) this.#wait(this.#reason);
      return;
    }
    this.#blemish();
    if (++this.#failedConnections < FAILED_CONNECTIONS) return;
    if (this.#options.isCutOff()) this.#eject('unreachable');
    else if (this.#options.canBeSpared()) this.#eject('failing');
  }

  /** Puts it back into service, on probation. */
  readmit(): void {
    if (this.#reason === undefined) return;
    this.close();
    this.#reason = undefined;
    this.#failedRequests = FAILED_REQUESTS - 1;
    this.#failedConnections = FAILED_CONNECTIONS - 1;
    this.#options.changed();
  }

  /** Ends the wait for the next probe. */
  close(): void {
    this.#timer?.cancel();
    this.#isProbed = false;
  }

  #blemish(): void {
    this.#isSpotless = false;
    this.#successes = 0;
  }

  #eject(reason: EjectionReason): void {
    if (reason !== this.#lastReason) this.#times = 0;
    this.#reason = reason;
    this.#lastReason = reason;
    this.#wait(reason);
    this.#options.changed();
  }

  #wait(reason: EjectionReason): void {
    const delayMs = Math.min(FIRST_MS[reason] * 2 ** this.#times++, LONGEST_MS[reason]);
    this.#isProbed = false;
    this.#timer = this.#options.scheduler.after(delayMs, () => {
      this.#isProbed = true;
      this.#options.probe();
    });
  }
}
