/**
 * The push of changes: Redis remembers which names were read on the records connection, missing ones included, and tells
 * the subscriber connection once when one of them changes, whoever changed it.
 *
 * Tracking is plain, not BCAST: that would push every write of every window to every gateway. Windows are read on a
 * connection of their own, which is not tracked.
 *
 * Both connections must last. When one is lost, Redis forgets what was read or has nobody to tell; when both are there
 * again, nobody knows what changed in between. Either moment is an invalidation of everything.
 */
import { InvalidationListeners } from '../invalidation-listeners.ts';
import type { Invalidations } from '../store.ts';
import type { RedisConnection } from './connection.ts';
import { parseTrackedName } from './key-names.ts';
import { SessionTask } from './session-task.ts';
import { UnexpectedReplyError } from './unexpected-reply.ts';

const CHANNEL = '__redis__:invalidate';

export interface InvalidationPushOptions {
  /** What is read on it is tracked. */
  readonly records: RedisConnection;
  /** Carries nothing but the pushes. */
  readonly subscriber: RedisConnection;
  readonly keyPrefix: string;
  /** The installation's id may have changed. */
  readonly onInstalled: () => void;
  /** Redis refused to push. */
  readonly onFailure: (error: unknown) => void;
}

export class InvalidationPush implements Invalidations {
  readonly #listeners = new InvalidationListeners();
  readonly #options: InvalidationPushOptions;
  readonly #arming: SessionTask;
  #subscriberId: { readonly session: number; readonly clientId: number } | undefined;

  constructor(options: InvalidationPushOptions) {
    const { records, subscriber, onInstalled, onFailure } = options;
    const emitAll = () => this.#listeners.emit({ kind: 'all' });
    this.#options = options;
    this.#arming = new SessionTask({
      session: () =>
        records.connected && subscriber.connected ? `${records.session}/${subscriber.session}` : undefined,
      work: () => this.#arm(),
      onDone: () => {
        emitAll();
        onInstalled();
      },
      onUndone: emitAll,
      onFailure,
    });
    subscriber.client.on('messageBuffer', (_channel: Buffer, names: readonly Buffer[] | null) => this.#pushed(names));
  }

  get connected(): boolean {
    return this.#arming.done;
  }

  get subscribe(): Invalidations['subscribe'] {
    return this.#listeners.subscribe;
  }

  /** To be called whenever one of the connections may have changed. */
  tend(): void {
    this.#arming.tend();
  }

  /** Resolves once the push is armed or was refused. */
  settled(): Promise<void> {
    return this.#arming.settled();
  }

  close(): void {
    this.#arming.close();
  }

  async #arm(): Promise<void> {
    const { records, subscriber } = this.#options;
    const { session } = subscriber;
    // The id must be asked for before the subscription: a subscriber may ask for nothing.
    if (this.#subscriberId?.session !== session) {
      const clientId: unknown = await subscriber.client.client('ID');
      if (typeof clientId !== 'number') throw new UnexpectedReplyError('CLIENT ID');
      this.#subscriberId = { session, clientId };
    }
    const { clientId } = this.#subscriberId;
    await subscriber.client.subscribe(CHANNEL);
    await records.client.client('TRACKING', 'ON', 'REDIRECT', clientId);
  }

  #pushed(names: readonly Buffer[] | null): void {
    const { keyPrefix, onInstalled } = this.#options;
    if (names === null) {
      this.#listeners.emit({ kind: 'all' });
      onInstalled();
      return;
    }
    for (const name of names) {
      const tracked = parseTrackedName(keyPrefix, name.toString());
      if (tracked?.kind === 'installed') onInstalled();
      else if (tracked !== undefined) this.#listeners.emit(tracked);
    }
  }
}
