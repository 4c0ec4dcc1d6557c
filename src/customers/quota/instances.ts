import type { Clock, Scheduler } from '../../base/clock.ts';
import { Periodic } from '../../base/periodic.ts';

/** Within this interval, instances that start together learn of each other, and lost announcements are repeated. */
const ANNOUNCE_INTERVAL_MS = 10_000;
const RETRY_MS = 1000;
/** How long a request that was admitted on a share counts against the limit. */
const SHARE_MS = 3_600_000;

interface InstancesOptions {
  /** Announces this instance. Resolves to the number of instances announced within the last hour. */
  readonly announce: () => Promise<number>;
  /** Withdraws the announcement. */
  readonly withdraw: () => Promise<void>;
  /** How long `close` waits for `withdraw`. */
  readonly timeoutMs: number;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly scheduler: Pick<Scheduler, 'after'>;
}

/**
 * Counts the instances that share the quotas: those announced within the last hour. A closing instance withdraws its
 * announcement, unless it admitted requests on its share within the last hour. Then the others must keep counting it,
 * as they do after a crash.
 */
export class Instances {
  readonly #options: InstancesOptions;
  #count: number | undefined;
  readonly #announcing: Periodic;
  #shareUsedMs = Number.NEGATIVE_INFINITY;

  constructor(options: InstancesOptions) {
    this.#options = options;
    this.#announcing = new Periodic(options.scheduler, async () => {
      try {
        this.#count = Math.max(1, await options.announce());
        return ANNOUNCE_INTERVAL_MS;
      } catch {
        return RETRY_MS;
      }
    });
  }

  /** Announces this instance now and every 10 s (1 s after a failure). Resolves after the first attempt in any case. */
  start(): Promise<void> {
    return this.#announcing.run();
  }

  /** Announces this instance early, because what it tells has changed. */
  announceNow(): void {
    if (this.announced) void this.#announcing.runAgain();
  }

  /** True once other instances can count this one. Until then it must not receive traffic. */
  get announced(): boolean {
    return this.#count !== undefined;
  }

  /** At least 1. */
  get count(): number {
    return this.#count ?? 1;
  }

  /** Returns {@link count}, and notes that this instance now admits requests on its share of a limit. */
  countForShare(): number {
    this.#shareUsedMs = this.#options.clock.monotonicMs();
    return this.count;
  }

  /** Stops announcing, and withdraws the announcement unless the share was used within the last hour. Never rejects. */
  async close(): Promise<void> {
    const { withdraw, timeoutMs, clock, scheduler } = this.#options;
    void this.#announcing.close();
    if (!this.announced || clock.monotonicMs() - this.#shareUsedMs < SHARE_MS) return;
    const { promise: timedOut, resolve } = Promise.withResolvers<void>();
    const timer = scheduler.after(timeoutMs, resolve);
    await Promise.race([withdraw().catch(() => undefined), timedOut]);
    timer.cancel();
  }
}
