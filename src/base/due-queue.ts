import type { Clock, Scheduler } from './clock.ts';

/** How often due items are looked for at most, and so how late one may be noticed. */
const MIN_INTERVAL_MS = 10;

/**
 * Reports items when they are due, with one timer for all. Items that are added later are due later. A timer for each
 * would live for seconds, and be copied to the old generation of the heap with all that its callback refers to.
 *
 * Items cannot be removed before they are due. The code that added an item decides then whether it still matters.
 */
export class DueQueue<Item> {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #scheduler: Pick<Scheduler, 'after'>;
  readonly #onDue: (item: Item) => void;
  #items: (Item | undefined)[] = [];
  #dueMs: number[] = [];
  #first = 0;
  #isWaiting = false;

  constructor(
    { clock, scheduler }: { readonly clock: Pick<Clock, 'monotonicMs'>; readonly scheduler: Pick<Scheduler, 'after'> },
    onDue: (item: Item) => void,
  ) {
    this.#clock = clock;
    this.#scheduler = scheduler;
    this.#onDue = onDue;
  }

  /** `dueMs`: monotonic. An item that is due before those added earlier is reported with them. */
  add(item: Item, dueMs: number): void {
    this.#items.push(item);
    this.#dueMs.push(dueMs);
    if (!this.#isWaiting) this.#wait(dueMs - this.#clock.monotonicMs());
  }

  #wait(delayMs: number): void {
    this.#isWaiting = true;
    this.#scheduler.after(delayMs, this.#run);
  }

  readonly #run = (): void => {
    this.#isWaiting = false;
    const nowMs = this.#clock.monotonicMs();
    for (;;) {
      const item = this.#items[this.#first];
      const dueMs = this.#dueMs[this.#first];
      if (item === undefined || dueMs === undefined) break;
      if (dueMs > nowMs) {
        this.#compact();
        this.#wait(Math.max(MIN_INTERVAL_MS, dueMs - nowMs));
        return;
      }
      this.#items[this.#first] = undefined;
      this.#first += 1;
      this.#onDue(item);
    }
    this.#compact();
  };

  /** Drops the reported half of the arrays, so that it costs little for each item. */
  #compact(): void {
    if (this.#first < this.#items.length / 2) return;
    this.#items = this.#items.slice(this.#first);
    this.#dueMs = this.#dueMs.slice(this.#first);
    this.#first = 0;
  }
}
