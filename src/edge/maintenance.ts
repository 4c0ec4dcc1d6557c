/**
 * The maintenance in force, in memory. The record is read again when the store pushes a change of it, and every few seconds,
 * in case the push is interrupted. While it cannot be read, the last known one stays in force.
 */
import type { Clock, Scheduler } from '../base/clock.ts';
import { Periodic } from '../base/periodic.ts';
import type { Invalidations } from '../store/invalidations.ts';
import { inForceAt, type Maintenance, type MaintenanceStore } from '../store/maintenance.ts';

const REREAD_MS = 5000;
const RETRY_MS = 1000;
/** They change nothing on the backend, so `read_only` lets them pass (RFC 9110 §9.2.1). */
const READING_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

interface MaintenanceWatchOptions {
  readonly store: Pick<MaintenanceStore, 'read'>;
  readonly invalidations: Pick<Invalidations, 'subscribe'>;
  /** By which it ends. */
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly scheduler: Pick<Scheduler, 'after'>;
}

export class MaintenanceWatch {
  readonly #clock: Pick<Clock, 'nowMs'>;
  readonly #reading: Periodic;
  readonly #unsubscribe: () => void;
  #known: Maintenance | undefined;

  constructor({ store, invalidations, clock, scheduler }: MaintenanceWatchOptions) {
    this.#clock = clock;
    this.#reading = new Periodic(scheduler, async () => {
      try {
        this.#known = await store.read();
        return REREAD_MS;
      } catch {
        // The store's own metrics and log tell of the failure.
        return RETRY_MS;
      }
    });
    this.#unsubscribe = invalidations.subscribe(({ kind }) => {
      if (kind === 'maintenance' || kind === 'all') void this.#reading.runAgain();
    });
  }

  /** Resolves when the record was read for the first time, or cannot be read now. */
  start(): Promise<void> {
    return this.#reading.run();
  }

  /** Undefined if none is in force. */
  get current(): Maintenance | undefined {
    return this.#known && inForceAt(this.#known, this.#clock.nowMs());
  }

  /** Returns the maintenance by which a request of the route is refused; undefined if it is not. */
  of(template: string, method: string): Maintenance | undefined {
    const { current } = this;
    if (current === undefined || (current.mode === 'read_only' && READING_METHODS.has(method))) return undefined;
    return current.routes === undefined || current.routes.includes(template) ? current : undefined;
  }

  close(): Promise<void> {
    this.#unsubscribe();
    return this.#reading.close();
  }
}
