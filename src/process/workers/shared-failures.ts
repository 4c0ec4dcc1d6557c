/**
 * Shares counts of failed keys, by client address block, with the other workers, so that the limit on failures holds for
 * all workers together. Counts are sent in batches, a few times a second; until then, each worker applies its own.
 */
import type { Scheduled, Scheduler } from '../../base/clock.ts';
import type { FailureCounts } from './messages.ts';

const SEND_AFTER_MS = 100;
/** Per message. Further blocks are not shared: counting does not stop an attacker with so many addresses. */
const MAX_BLOCKS = 1000;

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
    if (counted === undefined && this.#counts.size >= MAX_BLOCKS) return;
    this.#counts.set(block, (counted ?? 0) + 1);
    this.#sending ??= this.#scheduler.after(SEND_AFTER_MS, () => {
      this.#sending = undefined;
      this.#send([...this.#counts]);
      this.#counts.clear();
    });
  }
}
