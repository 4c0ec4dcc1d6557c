import type { Clock } from '../../base/clock.ts';
import type { Refund } from '../../store/windows.ts';

/** Monotonic and wall time in ms, read together: suspend stops the first, an operator can change the second. */
export interface Instant {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export function readInstant(clock: Clock): Instant {
  return { monotonicMs: clock.monotonicMs(), wallMs: clock.nowMs() };
}

/** A grant or report whose id the store still knows: what this instance gave back of it, and has to tell. */
export class OpenGrant {
  readonly id: string;
  /** When it was asked for. */
  readonly sentAt: Instant;
  /** Units that no request has used for good, and that are not refunded. */
  #open: number;
  #returned = 0;
  /** The part of `#returned` that the store has confirmed. */
  #confirmed = 0;
  /** Waits to be told, or for the reply. */
  isQueued = false;

  constructor(id: string, units: number, sentAt: Instant) {
    this.id = id;
    this.#open = units;
    this.sentAt = sentAt;
  }

  /** No more units can return. */
  get isSettled(): boolean {
    return this.#open === 0;
  }

  /** Units that the store does not know to be back. */
  get unconfirmed(): number {
    return this.#returned - this.#confirmed;
  }

  use(units: number): void {
    this.#open -= units;
  }

  giveBack(units: number): void {
    this.#open -= units;
    this.#returned += units;
  }

  refund(): SentRefund {
    return { grant: this.id, units: this.#returned, isFinal: this.isSettled, of: this };
  }

  /** Returns whether there is more to tell. */
  confirm({ units, isFinal }: Refund): boolean {
    this.#confirmed = Math.max(this.#confirmed, units);
    return this.unconfirmed > 0 || isFinal !== this.isSettled;
  }
}

export interface SentRefund extends Refund {
  readonly of: OpenGrant;
}
