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
  #doneFor: string | undefined;
  #running: Promise<void> | undefined;
  #retry: NodeJS.Timeout | undefined;
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
    if (this.#closed || this.#running || this.#retry || (this.#doneFor !== undefined && !this.#again)) return;
    const session = this.#options.session();
    if (session === undefined) return;
    this.#running = this.#attempt(session).finally(() => {
      this.#running = undefined;
      this.startIfDue();
    });
  }

  /** Runs the work once more, even for the same session. Resolves when the first attempt from now on has ended. */
  async runAgain(): Promise<void> {
    const earlier = this.#running;
    this.#again = true;
    this.startIfDue();
    await earlier;
    await this.#running;
  }

  /** Resolves once no attempt is running. */
  async whenIdle(): Promise<void> {
    while (this.#running) await this.#running;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#retry);
  }

  async #attempt(session: string): Promise<void> {
    const { work, onDone, onFailure } = this.#options;
    this.#again = false;
    try {
      await work();
      if (this.#options.session() !== session) return;
      this.#doneFor = session;
      onDone?.();
    } catch (error) {
      if (this.#closed || this.#options.session() !== session) return;
      onFailure?.(error);
      this.#retry = setTimeout(() => {
        this.#retry = undefined;
        this.startIfDue();
      }, RETRY_MS).unref();
    }
  }
}
