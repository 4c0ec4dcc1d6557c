/**
 * Records when keys are used, at the cost of one comparison per request. A key's use is written at most once a minute
 * while its record stays in memory, in a batch with the other uses of about 10 s. The time of last use is therefore
 * accurate to about a minute. Failed writes are not repeated: the key's next use, from a minute later on, is written
 * instead.
 */
import type { Clock, Scheduler } from '../../base/clock.ts';
import { Periodic } from '../../base/periodic.ts';
import type { KeyUseStore, NotedUse } from '../../store/key-uses.ts';
import type { EnforcedKey } from '../../store/record-fields.ts';

const FLUSH_INTERVAL_MS = 10_000;
/** Number of flushes after which a further use of a key is written. */
const FLUSHES_UNTIL_NOTED_AGAIN = 6;
/** Uses per store call, limited so that a call does not delay others for long. */
const MAX_USES_PER_CALL = 1000;

/** For keys that were not used since their record was read. */
export const NEVER_NOTED = -1 - FLUSHES_UNTIL_NOTED_AGAIN;

/** Part of what is remembered of a key with its record: a lookup per request would cost more than all else here. */
export interface KeyUse {
  readonly key: Pick<EnforcedKey, 'id'>;
  readonly sha256: string;
  /** The number of flushes before the last use that was noted. */
  flushesWhenNoted: number;
}

interface KeyUsesOptions {
  readonly store: Pick<KeyUseStore, 'noteUses'>;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly scheduler: Pick<Scheduler, 'after'>;
}

export class KeyUses {
  readonly #options: KeyUsesOptions;
  /** Uses that are not written yet, by key id. */
  #unwritten = new Map<string, NotedUse>();
  #flushes = 0;
  #writing: Promise<void> | undefined;
  readonly #flushing: Periodic;

  constructor(options: KeyUsesOptions) {
    this.#options = options;
    this.#flushing = new Periodic(options.scheduler, async () => {
      this.#flushes += 1;
      this.#write();
      return FLUSH_INTERVAL_MS;
    });
    this.#flushing.start(FLUSH_INTERVAL_MS);
  }

  /** Records a use. Called for every request with a valid key. */
  note(use: KeyUse): void {
    if (this.#flushes - use.flushesWhenNoted <= FLUSHES_UNTIL_NOTED_AGAIN) return;
    // The store is slow, and the batch is full. The use is not remembered, so the key's next one is noted.
    if (this.#unwritten.size >= MAX_USES_PER_CALL) return;
    use.flushesWhenNoted = this.#flushes;
    const { id: keyId } = use.key;
    this.#unwritten.set(keyId, { keyId, sha256: use.sha256, usedAtMs: this.#options.clock.nowMs() });
    if (this.#unwritten.size === MAX_USES_PER_CALL) this.#write();
  }

  /** Stops, and writes the uses noted so far. */
  async close(): Promise<void> {
    await this.#flushing.close();
    await this.#writing;
    this.#write();
    await this.#writing;
  }

  /** Makes one store call at a time, so as not to burden a slow store further. */
  #write(): void {
    if (this.#writing !== undefined || this.#unwritten.size === 0) return;
    const uses = [...this.#unwritten.values()];
    this.#unwritten = new Map();
    this.#writing = this.#options.store
      .noteUses(uses)
      // The store's metrics count the failure. All that is lost is accuracy, of about a minute.
      .catch(() => undefined)
      .then(() => {
        this.#writing = undefined;
        if (this.#unwritten.size >= MAX_USES_PER_CALL) this.#write();
      });
  }
}
