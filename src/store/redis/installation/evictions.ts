/**
 * Detects whether Redis evicted keys for lack of memory. Under a policy such as `allkeys-lru` these may include
 * records, so a missing record no longer proves that it never existed. Under a policy such as `volatile-lru` they are keys
 * that expire: windows, so quotas are not exact, and the usage history, so bills are not.
 *
 * Redis only reports a count of evictions since its start. The counts that an operator accepted with `store init` are
 * stored in `<prefix>:installed:evictions`, by the server's run id, so that gateways that start later know them too.
 */
import { ReplyError } from 'ioredis';
import type { RedisChannel } from '../connection/channel.ts';
import { infoField } from '../connection/server-check.ts';
import { SessionTask } from '../connection/session-task.ts';
import type { RedisKeyNames } from '../protocol/key-names.ts';

interface EvictionsOptions {
  readonly connection: RedisChannel;
  readonly names: RedisKeyNames;
  readonly warn: (message: string) => void;
  readonly onFailure: (error: unknown) => void;
}

export class Evictions {
  readonly #options: EvictionsOptions;
  /** Checks for evictions. Must be started whenever the connection may have changed. */
  readonly task: SessionTask;
  #evicted: 'nothing' | 'expiring keys' | 'any keys' = 'nothing';
  /** Whether a server's policy evicts any key when its memory is full. */
  #mayHappen = false;

  constructor(options: EvictionsOptions) {
    const { connection, onFailure } = options;
    this.#options = options;
    this.task = new SessionTask({
      session: () => connection.sessions,
      work: () => this.#check(),
      onFailure,
    });
  }

  /** Whether there were evictions that no operator accepted, as of the last check. */
  get happened(): boolean {
    return this.#evicted !== 'nothing';
  }

  /** Resolves to whether records may be evicted. Checks again, but only if that is possible since the last check. */
  async mayHaveEvictedRecords(): Promise<boolean> {
    if (this.#evicted !== 'any keys' && this.#mayHappen) await this.task.runAgain();
    return this.#evicted === 'any keys';
  }

  /** Accepts the evictions so far: they no longer cast doubt on missing records. */
  async accept(): Promise<void> {
    const { connection, names } = this.#options;
    const counted = await this.#count();
    const evicted = counted.filter((each) => each.evicted > 0).flatMap((each) => [each.runId, each.evicted]);
    const name = names.acceptedEvictions;
    await connection.client.del(name);
    if (evicted.length > 0) await connection.client.hset(name, ...evicted);
    await this.#check();
  }

  async #check(): Promise<void> {
    const { connection, names } = this.#options;
    const counted = await this.#count();
    this.#mayHappen = counted.some(({ policy }) => policy.startsWith('allkeys-'));
    const evicting = counted.filter(({ evicted }) => evicted > 0);
    const readAccepted = () => connection.attempt((redis) => redis.hgetall(names.acceptedEvictions));
    const accepted = evicting.length === 0 ? {} : await readAccepted();
    const unaccepted = evicting.filter(({ runId, evicted }) => evicted > Number(accepted[runId] ?? 0));
    if (unaccepted.length === 0) this.#set('nothing');
    else this.#set(unaccepted.every(({ policy }) => policy.startsWith('volatile-')) ? 'expiring keys' : 'any keys');
  }

  /** Reads the keys that each server evicted since its start. A server that refuses INFO counts as one without evictions. */
  async #count() {
    const { servers } = this.#options.connection;
    const infos = await Promise.all(
      servers.map((server) => server.attempt((redis) => redis.info().catch(emptyIfRefused))),
    );
    return infos.map((info) => ({
      runId: infoField(info, 'run_id') ?? '',
      policy: infoField(info, 'maxmemory_policy') ?? '',
      evicted: Number(infoField(info, 'evicted_keys') ?? 0),
    }));
  }

  #set(evicted: keyof typeof WARNINGS): void {
    if (evicted === this.#evicted) return;
    this.#evicted = evicted;
    this.#options.warn(WARNINGS[evicted]);
  }
}

const WARNINGS = {
  nothing: 'the evictions of Redis were accepted: unknown keys get 401 again',
  'expiring keys':
    'Redis has evicted keys that expire: used quota and usage history may be lost. Give it more memory, set maxmemory-policy noeviction, and then run "tollgate store init"',
  'any keys':
    'Redis has evicted keys, perhaps records: unknown keys get 503. Give it more memory, set maxmemory-policy noeviction, write the missing records again, and then run "tollgate store init"',
};

/** Where INFO is forbidden, evictions cannot be detected. */
function emptyIfRefused(error: unknown): string {
  if (error instanceof ReplyError) return '';
  throw error;
}
