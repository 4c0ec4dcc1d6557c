/**
 * Takes note of which keys are used, at the cost of a look into a map for a request. A key is written at most once a
 * minute, together with all others of a few seconds; what was last used is therefore known to about a minute. A write
 * that fails is not repeated: the key's next use, from a minute later on, is.
 */
import type { Clock, Scheduled, Scheduler } from '../clock.ts';
import type { KeyUseStore } from '../store/store.ts';

const FLUSH_INTERVAL_MS = 10_000;
/** Flushes after which a key that is used again is written again. */
const FLUSHES_UNTIL_NOTED_AGAIN = 6;
/** One call to the store may not keep it from others for long. */
const MOST_IN_A_CALL = 1000;
const MOST_REMEMBERED = 100_000;

export interface KeyUsesOptions {
  readonly store: Pick<KeyUseStore, 'noteUses'>;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly scheduler: Pick<Scheduler, 'after'>;
}

export class KeyUses {
  readonly #options: KeyUsesOptions;
  /** The number of the flush before which a key was noted, oldest first. */
  readonly #notedBefore = new Map<string, number>();
  /** Wall time in ms of uses that are not written yet. */
  #unwritten = new Map<string, number>();
  #flushes = 0;
  #writing: Promise<void> | undefined;
  #timer: Scheduled;

  constructor(options: KeyUsesOptions) {
    this.#options = options;
    this.#timer = this.#startAfterInterval();
  }

  /** Called for every request whose key is good. */
  note(keyId: string): void {
    if (this.#notedBefore.has(keyId)) return;
    // The store is slow. The key is not remembered, so its next use is noted.
    if (this.#unwritten.size >= MOST_IN_A_CALL) return;
    // With more keys than that, some are written more than once a minute; none is left out.
    if (this.#notedBefore.size >= MOST_REMEMBERED) this.#notedBefore.clear();
    this.#notedBefore.set(keyId, this.#flushes);
    this.#unwritten.set(keyId, this.#options.clock.nowMs());
    if (this.#unwritten.size === MOST_IN_A_CALL) this.#write();
  }

  /** Writes what was noted, and stops. */
  async close(): Promise<void> {
    this.#timer.cancel();
    await this.#writing;
    this.#write();
    await this.#writing;
  }

  #startAfterInterval(): Scheduled {
    return this.#options.scheduler.after(FLUSH_INTERVAL_MS, () => {
      this.#flushes += 1;
      this.#forget();
      this.#write();
      this.#timer = this.#startAfterInterval();
    });
  }

  #forget(): void {
    for (const [keyId, notedBefore] of this.#notedBefore) {
      if (this.#flushes - notedBefore <= FLUSHES_UNTIL_NOTED_AGAIN) return;
      this.#notedBefore.delete(keyId);
    }
  }

  /** One call at a time: a store that is slow gets no more of them. */
  #write(): void {
    if (this.#writing !== undefined || this.#unwritten.size === 0) return;
    const uses = Array.from(this.#unwritten, ([keyId, usedAtMs]) => ({ keyId, usedAtMs }));
    this.#unwritten = new Map();
    this.#writing = this.#options.store
      .noteUses(uses)
      // The store's metrics count it, and what was lost is no more than a minute's accuracy.
      .catch(() => undefined)
      .then(() => {
        this.#writing = undefined;
        if (this.#unwritten.size >= MOST_IN_A_CALL) this.#write();
      });
  }
}
