/**
 * The push of changes: Redis tells the subscriber connection the name of every key record, customer record and mark of
 * the installation (installed.ts) that any program writes or deletes.
 *
 * Tracking is by prefix (BCAST). Without BCAST, Redis would remember each name that was read, made-up keys too, and once
 * its table is full it reports good records as changed to make room. The prefixes leave out what changes with every
 * request: the windows.
 *
 * Both connections must last: tracking ends with the records connection, the pushes with the subscriber's. Changes made
 * meanwhile are unknown, so losing either, and tracking again, counts as an invalidation of everything.
 */
import { InvalidationListeners } from '../invalidation-listeners.ts';
import type { Invalidations } from '../store.ts';
import type { RedisConnection } from './connection.ts';
import { parseTrackedName, trackedPrefixes } from './key-names.ts';
import { SessionTask } from './session-task.ts';
import { UnexpectedReplyError } from './unexpected-reply.ts';

const CHANNEL = '__redis__:invalidate';

export interface InvalidationPushOptions {
  /** Tracks; the pushes go to the other one. */
  readonly records: RedisConnection;
  /** Carries nothing but the pushes. */
  readonly subscriber: RedisConnection;
  readonly keyPrefix: string;
  /** A mark of the installation may have changed. */
  readonly onInstalled: () => void;
  /** This record was written or deleted. */
  readonly onRecord: (name: string) => void;
  /** Everything was deleted, or may have been meanwhile. */
  readonly onDisturbed: () => void;
  /** Redis refused to push. */
  readonly onFailure: (error: unknown) => void;
}

export class InvalidationPush implements Invalidations {
  readonly #listeners = new InvalidationListeners();
  readonly #options: InvalidationPushOptions;
  readonly #arming: SessionTask;
  #subscriberId: { readonly session: number; readonly clientId: number } | undefined;

  constructor(options: InvalidationPushOptions) {
    const { records, subscriber, onDisturbed, onFailure } = options;
    const anythingMayHaveChanged = () => {
      this.#listeners.emit({ kind: 'all' });
      onDisturbed();
    };
    this.#options = options;
    this.#arming = new SessionTask({
      session: () =>
        records.connected && subscriber.connected ? `${records.session}/${subscriber.session}` : undefined,
      work: () => this.#arm(),
      onDone: anythingMayHaveChanged,
      onUndone: anythingMayHaveChanged,
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
    const { records, subscriber, keyPrefix } = this.#options;
    const { session } = subscriber;
    // The id must be asked for before the subscription: a subscriber may ask for nothing.
    if (this.#subscriberId?.session !== session) {
      const clientId: unknown = await subscriber.client.client('ID');
      if (typeof clientId !== 'number') throw new UnexpectedReplyError('CLIENT ID');
      this.#subscriberId = { session, clientId };
    }
    const { clientId } = this.#subscriberId;
    await subscriber.client.subscribe(CHANNEL);
    const prefixes = trackedPrefixes(keyPrefix).flatMap((prefix) => ['PREFIX', prefix]);
    await Promise.all([
      // Redis refuses prefixes that the connection tracks already.
      records.client.client('TRACKING', 'OFF'),
      records.client.call('CLIENT', 'TRACKING', 'ON', 'REDIRECT', clientId, 'BCAST', ...prefixes),
    ]);
  }

  #pushed(names: readonly Buffer[] | null): void {
    const { keyPrefix, onInstalled, onRecord, onDisturbed } = this.#options;
    if (names === null) {
      this.#listeners.emit({ kind: 'all' });
      onDisturbed();
      return;
    }
    for (const name of names) {
      const text = name.toString();
      const tracked = parseTrackedName(keyPrefix, text);
      if (tracked === undefined) continue;
      if (tracked.kind === 'installed') {
        onInstalled();
      } else {
        this.#listeners.emit(tracked);
        onRecord(text);
      }
    }
  }
}
