/**
 * Failed keys by address, told to the other workers: so that an address which fails at one has failed at all of them. What
 * was counted is sent a few times a second, together; in between, each worker goes by what it knows.
 */
import type { Scheduled, Scheduler } from '../clock.ts';

const SEND_AFTER_MS = 100;
/** In one message. Addresses beyond it are not told of: an attacker who has that many is not held by counting them. */
const MOST_ADDRESSES = 1000;

export type FailureCounts = readonly (readonly [block: string, failures: number])[];

export class SharedFailures {
  readonly #send: (counts: FailureCounts) => void;
  readonly #scheduler: Pick<Scheduler, 'after'>;
  readonly #counts = new Map<string, number>();
  #sending: Scheduled | undefined;

  constructor(send: (counts: FailureCounts) => void, scheduler: Pick<Scheduler, 'after'>) {
    this.#send = send;
    this.#scheduler = scheduler;
  }

  count(block: string): void {
    const counted = this.#counts.get(block);
    if (counted === undefined && this.#counts.size >= MOST_ADDRESSES) return;
    this.#counts.set(block, (counted ?? 0) + 1);
    this.#sending ??= this.#scheduler.after(SEND_AFTER_MS, () => {
      this.#sending = undefined;
      this.#send([...this.#counts]);
      this.#counts.clear();
    });
  }
}
