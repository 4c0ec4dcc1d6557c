/**
 * Collects requests that were refused or failed in memory, and adds them to the store every few seconds. A crash loses
 * those of the last seconds. While the store is away, as many wait as it may hold.
 */
import type { Clock, Scheduler } from '../../base/clock.ts';
import { Periodic } from '../../base/periodic.ts';
import { uniqueIds } from '../../base/unique-ids.ts';
import {
  type FailedRequest,
  type FailedRequestBounds,
  type FailedRequestStore,
  senderOf,
  surplusOf,
} from '../../store/failed-requests.ts';

/** With the time of the write itself, less than the promised 10 s. */
const WRITE_INTERVAL_MS = 5000;
/** Noted for each customer, or address block of clients without a valid key. Further ones of the second are dropped. */
const NOTED_PER_SECOND = 20;
/** Senders that are counted apart in one second. All others together count as one. */
const MAX_SENDERS = 10_000;

interface CollectorOptions {
  readonly store: Pick<FailedRequestStore, 'add' | 'nowMs'>;
  readonly storeIsUp: () => boolean;
  /** Undefined: none are collected. */
  readonly bounds: FailedRequestBounds | undefined;
  /** Called with the number of requests that will not be in the store. */
  readonly dropped: (count: number) => void;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly scheduler: Pick<Scheduler, 'after'>;
}

type NotedRequest = Omit<FailedRequest, 'id' | 'atMs'>;

interface Noted {
  readonly request: NotedRequest;
  /** By this process's clock. */
  readonly atMs: number;
  /** Given at the first write. */
  id?: string;
}

export class FailedRequestCollector {
  readonly #options: CollectorOptions;
  readonly #newId = uniqueIds();
  #bounds: FailedRequestBounds | undefined;
  /** Oldest first. */
  #noted: Noted[] = [];
  /** Counts of the present second by sender. */
  readonly #counts = new Map<string, number>();
  #second = 0;
  readonly #writing: Periodic;

  constructor(options: CollectorOptions) {
    this.#options = options;
    this.#bounds = options.bounds;
    this.#writing = new Periodic(options.scheduler, async () => {
      await this.#write();
      return WRITE_INTERVAL_MS;
    });
    this.#writing.start(WRITE_INTERVAL_MS);
  }

  applyBounds(bounds: FailedRequestBounds | undefined): void {
    this.#bounds = bounds;
    if (bounds === undefined) this.#noted = [];
  }

  note(request: NotedRequest): void {
    if (this.#bounds === undefined) return;
    const nowMs = this.#options.clock.nowMs();
    if (!this.#isWithinRate(senderOf(request), nowMs)) {
      this.#options.dropped(1);
      return;
    }
    this.#noted.push({ request, atMs: nowMs });
    if (this.#noted.length >= 2 * this.#bounds.entries) this.#makeRoom(this.#bounds);
  }

  /** Stops, and writes what was collected so far. */
  async close(): Promise<void> {
    await this.#writing.close();
    await this.#write();
  }

  #isWithinRate(sender: string, nowMs: number): boolean {
    const second = Math.floor(nowMs / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#counts.clear();
    }
    const known = this.#counts.get(sender);
    const counted = known === undefined && this.#counts.size >= MAX_SENDERS ? '' : sender;
    const count = 1 + (known ?? this.#counts.get(counted) ?? 0);
    if (count <= NOTED_PER_SECOND) this.#counts.set(counted, count);
    return count <= NOTED_PER_SECOND;
  }

  #makeRoom({ entries }: FailedRequestBounds): void {
    const surplus = new Set(surplusOf(this.#noted.map(({ request }) => request).reverse(), entries));
    this.#noted = this.#noted.filter(({ request }) => !surplus.has(request));
    if (surplus.size > 0) this.#options.dropped(surplus.size);
  }

  /** Never rejects. A write of which the outcome is unknown is repeated: the store knows each request by its id. */
  async #write(): Promise<void> {
    const { store, storeIsUp, clock } = this.#options;
    const bounds = this.#bounds;
    if (bounds === undefined || this.#noted.length === 0 || !storeIsUp()) return;
    this.#makeRoom(bounds);
    const noted = this.#noted;
    this.#noted = [];
    try {
      const sentAtMs = clock.nowMs();
      const storeMs = await store.nowMs();
      const offsetMs = storeMs - (sentAtMs + clock.nowMs()) / 2;
      const atStoreTime = noted.map((each) => {
        each.id ??= this.#newId();
        return { ...each.request, id: each.id, atMs: Math.round(each.atMs + offsetMs) };
      });
      await store.add(atStoreTime, bounds);
    } catch {
      // The store's metrics count the failure.
      if (this.#bounds !== undefined) this.#noted = [...noted, ...this.#noted];
    }
  }
}
