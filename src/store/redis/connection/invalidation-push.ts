/**
 * The push of changes. Redis sends the subscriber connection the name of every key record, customer record, maintenance
 * record and installation mark (data-loss-detection.ts) that any program writes or deletes.
 *
 * Tracking is by prefix (BCAST). Without BCAST, Redis would remember each name that was read, including those of
 * made-up API keys. Once its table is full, it reports unchanged records as changed to make room. The prefixes exclude
 * the windows, which change with every request.
 *
 * Both connections are needed: tracking ends with the records connection, the pushes end with the subscriber connection.
 * Changes made in between are unknown. So losing either connection, and tracking again, counts as an invalidation of
 * everything.
 */
import { type Clock, systemScheduler } from '../../../base/clock.ts';
import { Periodic } from '../../../base/periodic.ts';
import { InvalidationListeners, type Invalidations } from '../../invalidations.ts';
import type { RedisConnection } from '../connection/connection.ts';
import { SessionTask } from '../connection/session-task.ts';
import type { RedisKeyNames, TrackedName } from '../protocol/key-names.ts';
import { UnexpectedReplyError } from '../protocol/redis-errors.ts';

const CHANNEL = '__redis__:invalidate';
const HEARTBEAT_MS = 5000;

export interface InvalidationPushOptions {
  /** The connection that enables tracking. The pushes go to `subscriber`. */
  readonly records: RedisConnection;
  /** Carries only the pushes. */
  readonly subscriber: RedisConnection;
  readonly names: RedisKeyNames;
  readonly clock: Clock;
  /** Interval of the proofs. Default 5 s. */
  readonly heartbeatMs?: number;
  /** Called for each push that listeners receive, and when an installation mark may have changed. */
  readonly onPush: (pushed: TrackedName | { readonly kind: 'all' }) => void;
  /** Called when enabling the pushes fails. */
  readonly onFailure: (error: unknown) => void;
}

/** The pushes of one or more servers. */
export interface PushedInvalidations extends Invalidations {
  /** Enable the pushes. Must be started whenever a connection may have changed. */
  readonly tasks: readonly SessionTask[];
}

export class InvalidationPush implements PushedInvalidations {
  readonly tasks: readonly SessionTask[];
  readonly #listeners = new InvalidationListeners();
  readonly #options: InvalidationPushOptions;
  #subscriberId: { readonly session: string | undefined; readonly clientId: number } | undefined;
  #provenAtMs = Number.NEGATIVE_INFINITY;
  /** Until the session is lost. */
  readonly #proving = new Periodic(systemScheduler, async () => {
    await this.#prove();
    return this.connected ? (this.#options.heartbeatMs ?? HEARTBEAT_MS) : undefined;
  });

  constructor(options: InvalidationPushOptions) {
    const { records, subscriber, onFailure } = options;
    this.#options = options;
    const enabling = new SessionTask({
      session: () => {
        const ofRecords = records.sessions;
        const ofSubscriber = subscriber.sessions;
        // Read twice for each request, so no list is created.
        return ofRecords === undefined || ofSubscriber === undefined ? undefined : `${ofRecords},${ofSubscriber}`;
      },
      work: () => this.#enable(),
      onDone: () => {
        this.#emit({ kind: 'all' });
        void this.#proving.runAgain();
      },
      onSessionLost: () => {
        this.#provenAtMs = Number.NEGATIVE_INFINITY;
        this.#emit({ kind: 'all' });
      },
      onFailure,
    });
    this.tasks = [enabling];
    subscriber.client.on('messageBuffer', (_channel: Buffer, changed: readonly Buffer[] | null) =>
      this.#pushed(changed),
    );
  }

  get connected(): boolean {
    return this.tasks.every(({ done }) => done);
  }

  get provenAtMs(): number {
    return this.connected ? this.#provenAtMs : Number.NEGATIVE_INFINITY;
  }

  get subscribe(): Invalidations['subscribe'] {
    return this.#listeners.subscribe;
  }

  /**
   * Proves that every change until now is pushed: Redis still tracks for the subscriber connection, and that connection
   * delivers, as the reply to PING comes after the pushes. Without a proof, records are read again as if nothing were
   * pushed. Where TRACKINGINFO is not permitted nothing is proven.
   */
  async #prove(): Promise<void> {
    const { records, subscriber, clock } = this.#options;
    const sentAtMs = clock.monotonicMs();
    const sessions = [records.sessions, subscriber.sessions].join();
    const [info] = await Promise.all([records.client.call('CLIENT', 'TRACKINGINFO'), subscriber.client.ping()]).catch(
      () => [undefined],
    );
    const areSame = sessions === [records.sessions, subscriber.sessions].join();
    if (info === undefined || !this.connected || !areSame) return;
    if (this.#isTracking(info)) this.#provenAtMs = sentAtMs;
    else for (const task of this.tasks) void task.runAgain();
  }

  /** `info`: a list of names and values. */
  #isTracking(info: unknown): boolean {
    if (!Array.isArray(info)) return false;
    const [flags, redirect] = ['flags', 'redirect'].map((name): unknown => info[info.indexOf(name) + 1]);
    const isOn = Array.isArray(flags) && flags.includes('on') && !flags.includes('broken_redirect');
    return isOn && redirect === this.#subscriberId?.clientId;
  }

  async #enable(): Promise<void> {
    const { records, subscriber, names } = this.#options;
    const session = subscriber.sessions;
    // CLIENT ID comes before SUBSCRIBE, because a subscribed connection refuses it.
    if (this.#subscriberId === undefined || this.#subscriberId.session !== session) {
      const clientId: unknown = await subscriber.client.client('ID');
      if (typeof clientId !== 'number') throw new UnexpectedReplyError('CLIENT ID');
      this.#subscriberId = { session, clientId };
    }
    const { clientId } = this.#subscriberId;
    await subscriber.client.subscribe(CHANNEL);
    const prefixes = names.trackedPrefixes.flatMap((prefix) => ['PREFIX', prefix]);
    await Promise.all([
      // Redis refuses prefixes that the connection tracks already.
      records.client.client('TRACKING', 'OFF'),
      records.client.call('CLIENT', 'TRACKING', 'ON', 'REDIRECT', clientId, 'BCAST', ...prefixes),
    ]);
  }

  /** `changed`: names, or null when everything was deleted. */
  #pushed(changed: readonly Buffer[] | null): void {
    if (changed === null) this.#emit({ kind: 'all' });
    for (const name of changed ?? []) {
      const tracked = this.#options.names.parseTracked(name.toString());
      if (tracked !== undefined) this.#emit(tracked);
    }
  }

  #emit(pushed: TrackedName | { readonly kind: 'all' }): void {
    if (pushed.kind !== 'installed') this.#listeners.emit(pushed);
    this.#options.onPush(pushed);
  }
}
