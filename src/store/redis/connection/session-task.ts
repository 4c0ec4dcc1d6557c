import { systemScheduler } from '../../../base/clock.ts';
import { Periodic } from '../../../base/periodic.ts';

/**
 * Work that must be done once for every session of some connections: again after each reconnect, and one second after
 * each failure.
 */
const RETRY_MS = 1000;

interface SessionTaskOptions {
  /** Identifies the session that the work applies to; undefined while there is nothing to work on. */
  readonly session: () => string | undefined;
  readonly work: () => Promise<void>;
  readonly onDone?: () => void;
  /** Called when the session of the finished work has ended. */
  readonly onSessionLost?: () => void;
  readonly onFailure?: (error: unknown) => void;
}

export class SessionTask {
  readonly #options: SessionTaskOptions;
  readonly #attempts = new Periodic(
    systemScheduler,
    () => this.#attempt(),
    () => this.startIfDue(),
  );
  #doneFor: string | undefined;
  #again = false;
  #closed = false;

  constructor(options: SessionTaskOptions) {
    this.#options = options;
  }

  get done(): boolean {
    return this.#doneFor !== undefined && this.#doneFor === this.#options.session();
  }

  /** Starts the work if it is due. Must be called whenever the session may have changed. Cheap when nothing is due. */
  startIfDue(): void {
    if (this.#doneFor !== undefined && !this.done) {
      this.#doneFor = undefined;
      this.#options.onSessionLost?.();
    }
    if (this.#attempts.isPlanned || (this.#doneFor !== undefined && !this.#again)) return;
    if (this.#options.session() !== undefined) void this.#attempts.run();
  }

  /** Runs the work once more, even for the same session. Resolves when the first attempt from now on has ended. */
  async runAgain(): Promise<void> {
    const earlier = this.#attempts.running;
    this.#again = true;
    this.startIfDue();
    await earlier;
    await this.#attempts.running;
  }

  /** Resolves once no attempt is running. */
  async whenIdle(): Promise<void> {
    while (this.#attempts.running) await this.#attempts.running;
  }

  close(): void {
    this.#closed = true;
    void this.#attempts.close();
  }

  /** Resolves to the ms until the next attempt after a failure. */
  async #attempt(): Promise<number | undefined> {
    const { work, onDone, onFailure } = this.#options;
    const session = this.#options.session();
    if (session === undefined) return undefined;
    this.#again = false;
    try {
      await work();
      if (this.#options.session() !== session) return undefined;
      this.#doneFor = session;
      onDone?.();
      return undefined;
    } catch (error) {
      if (this.#closed || this.#options.session() !== session) return undefined;
      onFailure?.(error);
      return RETRY_MS;
    }
  }
}
