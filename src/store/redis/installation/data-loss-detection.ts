/**
 * Decides whether a record that is missing from the store can be taken not to exist. That is in doubt when the store
 * lost its data or holds no record at all, and when Redis evicted keys (see evictions.ts).
 *
 * The installation mark is a random id in `<prefix>:installed`. In a cluster there is one more for each part of the slots,
 * because a master may lose its data while the others keep theirs; a read of a record also reads the mark of its part. A
 * gateway remembers the id that it read first.
 *
 * | mark | meaning |
 * |---|---|
 * | the remembered id X | The data is whole. |
 * | missing | The data was lost. The gateway writes `lost-X`, so that gateways that start later know. |
 * | `lost-X` | The data was lost, until X is back. |
 * | `init-…` | An operator accepts the data as it is. |
 * | another id | The data was lost: another gateway started on the emptied store. Never overwritten. |
 *
 * A store without any record proves nothing, because a gateway that starts after a loss finds it empty as well. The id
 * read from an empty store proves little: a restore may be filling the store, and it writes its own id last. So another
 * id may replace that id, unless data may have been lost in between.
 *
 * No timer is needed: each read of a record also reads the mark, Redis pushes changes of the mark, and each new
 * connection reads it.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { StoreDoubtError } from '../../errors.ts';
import type { RedisChannel } from '../connection/channel.ts';
import { type Command, type RedisClient, scanSteps, textFrom } from '../connection/client.ts';
import { SessionTask } from '../connection/session-task.ts';
import { PART_TAGS, partOf, slotOf } from '../protocol/hash-slots.ts';
import type { RedisKeyNames, TrackedName } from '../protocol/key-names.ts';
import { UnexpectedReplyError } from '../protocol/redis-errors.ts';
import { Evictions } from './evictions.ts';

const LOST_PREFIX = 'lost-';
const INIT_PREFIX = 'init-';
const ID_BYTES = 16;
const SCAN_COUNT = 1000;
/** Time in which a gateway that starts on an empty cluster writes every mark. */
const START_MS = 200;

export interface Mark {
  readonly name: string;
  readonly id: string | null;
}

/** `unknown`: the search for a record has not finished. */
type DataState = 'unknown' | 'empty' | 'wiped' | 'whole';

interface DataLossDetectionOptions {
  /** The connection on which records are read. */
  readonly connection: RedisChannel;
  readonly names: RedisKeyNames;
  readonly warn: (message: string) => void;
  /** Called when marks or evictions cannot be read, or a mark cannot be written. */
  readonly onFailure: (error: unknown) => void;
  /** Writes no mark. */
  readonly readOnly: boolean;
}

export class DataLossDetection {
  readonly #options: DataLossDetectionOptions;
  readonly #mark = new InstallationMark();
  readonly #evictions: Evictions;
  readonly #establishing: SessionTask;
  /** Read the marks and evictions. Must be started whenever the connection may have changed. */
  readonly tasks: readonly SessionTask[];
  /** Whether this gateway wrote the id of a new installation. Perhaps not every mark holds the id yet. */
  #isFirst = false;
  #state: DataState = 'unknown';
  /** Names of the marks to which `lost-…` is being written. */
  readonly #marking = new Set<string>();

  constructor(options: DataLossDetectionOptions) {
    const { connection, onFailure } = options;
    this.#options = options;
    this.#evictions = new Evictions(options);
    this.#establishing = new SessionTask({
      session: () => connection.sessions,
      work: () =>
        this.#establish().catch((error: unknown) => {
          // State from before the failure may be outdated by the time of the retry.
          this.#mark.doubt();
          throw error;
        }),
      onSessionLost: () => this.#mark.doubt(),
      onFailure,
    });
    this.tasks = [this.#establishing, this.#evictions.task];
  }

  get wiped(): boolean {
    return this.#state === 'wiped';
  }

  /** No record is known: none was found, or the search has not succeeded yet. */
  get empty(): boolean {
    const { state } = this.#mark;
    return state === 'empty' || state === 'unknown';
  }

  /** Redis evicted keys: windows and usage history, and perhaps records. */
  get evicted(): boolean {
    return this.#evictions.happened;
  }

  /** Returns the name of the mark that would be lost together with the Redis key `name`. */
  markNear(name: string): string {
    const { connection, names } = this.#options;
    const tag = connection.isCluster ? PART_TAGS[partOf(slotOf(name))] : undefined;
    return tag === undefined ? names.installed : names.installedPart(tag);
  }

  /** Updates the state from a mark that was just read. */
  see(mark: Mark): void {
    this.#seeAll([mark]);
    if (this.#mark.isNew || this.#mark.state === 'unknown') void this.#establishing.runAgain();
  }

  /** Notes that a record was read or written, so the store is not empty. */
  sawRecord(): void {
    if (this.#mark.hasRecord) return;
    this.#mark.sawRecord();
    this.#logState();
  }

  /** Handles a push: a record or mark was written or deleted, or data may have been lost unnoticed. */
  pushed(pushed: TrackedName | { readonly kind: 'all' }): void {
    if (pushed.kind === 'installed') {
      void this.#establishing.runAgain();
      void this.#evictions.task.runAgain();
    } else if (pushed.kind === 'all') {
      this.#mark.doubt();
      void this.#establishing.runAgain();
    } else if (pushed.kind !== 'maintenance' && !this.#mark.hasRecord) {
      const { connection, names } = this.#options;
      const name = pushed.kind === 'key' ? names.keyRecord(pushed.sha256) : names.customerRecord(pushed.id);
      connection.client.exists(name).then(
        (count) => count > 0 && this.sawRecord(),
        // Ignored, because the next read that finds a record has the same effect.
        () => undefined,
      );
    }
  }

  /**
   * Must be called when no record was found, after `see` received the mark.
   * @throws StoreDoubtError when that does not prove that the record never existed. A store without records is doubted
   * only for keys: other reads mainly serve operators, who see the store's state.
   */
  async requireCertainty(what: 'key' | 'other'): Promise<void> {
    const { state } = this.#mark;
    if (state === 'wiped') throw new StoreDoubtError('wiped');
    if (what === 'key' && state !== 'whole') throw new StoreDoubtError('empty');
    if (await this.#evictions.mayHaveEvictedRecords()) throw new StoreDoubtError('evicted');
  }

  /** Accepts the store's present data as intended. */
  async initialise(): Promise<void> {
    const { connection } = this.#options;
    const id = INIT_PREFIX + newId();
    await this.#evictions.accept();
    await allOf(
      connection.client,
      this.#markNames.map((name) => ['set', name, id]),
    );
    // Reads the marks back, because replies to earlier reads may still bring the old id. Those arrive before this
    // reply.
    this.#seeAll(await this.#readMarks());
  }

  /** Checks for evictions. Must be called regularly, because Redis does not report them by itself. */
  checkEvictions(): void {
    void this.#evictions.task.runAgain();
  }

  /** Reads the marks on another connection, to verify what was read there. */
  async readMarksOn(redis: RedisClient): Promise<void> {
    this.#seeAll(await this.#readMarks(redis));
  }

  /** The names of all marks. The first is the main mark. */
  get #markNames(): readonly string[] {
    const { connection, names } = this.#options;
    const parts = connection.isCluster ? PART_TAGS.map((tag) => names.installedPart(tag)) : [];
    return [names.installed, ...parts];
  }

  #seeAll(marks: readonly Mark[]): void {
    // Existing marks first: they contain the id that the missing ones had.
    for (const mark of marks.toSorted((a, b) => Number(a.id === null) - Number(b.id === null))) {
      const toWrite = this.#mark.see(mark);
      if (toWrite !== undefined) void this.#markLost(mark.name, toWrite);
    }
    this.#logState();
  }

  async #readMarks(redis: RedisClient = this.#options.connection.client): Promise<readonly Mark[]> {
    const marks = this.#markNames;
    const ids = await allOf(
      redis,
      marks.map((name) => ['get', name]),
    );
    return marks.map((name, index) => ({ name, id: textFrom(ids[index]) }));
  }

  async #establish(): Promise<void> {
    let marks = await this.#readMarks();
    if (this.#mark.isNew && !this.#isFirst && marks.some(isMissing) && !marks.every(isMissing)) {
      // Another gateway that is starting may be writing the missing marks.
      await setTimeout(START_MS);
      marks = await this.#readMarks();
    }
    if (this.#mark.isNew && marks.some(isMissing) && !this.#options.readOnly) {
      // Failure is not fatal: a Redis that refuses writes may still hold records. The next read that finds the mark
      // missing retries.
      await this.#writeMissing(marks).catch(this.#options.onFailure);
      marks = await this.#readMarks();
    }
    this.#seeAll(marks);
    if (this.#mark.state === 'unknown') {
      if (await this.#findRecord()) this.#mark.sawRecord();
      else this.#mark.sawNoRecord();
      this.#logState();
    }
    if (this.#isFirst && this.#mark.hasRecord) this.#warnOfWritten();
    this.#isFirst = false;
  }

  /** Writes a new id when there is no mark at all, and the id to the marks of the parts when none of them exists. */
  async #writeMissing([main, ...parts]: readonly Mark[]): Promise<void> {
    const { connection } = this.#options;
    if (main === undefined) throw new UnexpectedReplyError('GET');
    const hasParts = !parts.every(isMissing);
    if (main.id === null && !hasParts && (await connection.client.set(main.name, newId(), 'NX')) === 'OK') {
      this.#isFirst = true;
    }
    const missing = parts.filter(isMissing);
    // If only some parts lack their mark, those marks were lost, unless this gateway is still writing them.
    const id = this.#isFirst || !hasParts ? await connection.client.get(main.name) : null;
    if (id !== null && missing.length > 0) {
      await allOf(
        connection.client,
        missing.map(({ name }) => ['set', name, id, 'NX']),
      );
    }
  }

  /** Returns whether there is any record under the prefix. Scans all Redis keys until one is found. */
  async #findRecord(): Promise<boolean> {
    const { connection, names } = this.#options;
    const isRecord = (name: string) =>
      names.keyRecords.parse(name) !== undefined || names.customerRecords.parse(name) !== undefined;
    for (const { client } of connection.servers) {
      const scan = (cursor: string) => client.scan(cursor, 'MATCH', names.everyName, 'COUNT', SCAN_COUNT);
      for await (const found of scanSteps(scan)) {
        if (found.some(isRecord) || this.#mark.hasRecord) return true;
      }
    }
    return false;
  }

  /** Writes `lost-…` to a mark, so that gateways that start later know of the loss. */
  async #markLost(name: string, id: string): Promise<void> {
    const { connection, onFailure, readOnly } = this.#options;
    if (readOnly || this.#marking.has(name)) return;
    this.#marking.add(name);
    // After a failure, the next read that finds the mark missing retries.
    await connection.client.set(name, id, 'NX').catch(onFailure);
    this.#marking.delete(name);
  }

  #warnOfWritten(): void {
    const { names, warn } = this.#options;
    warn(
      `${names.installed} was missing although the store has records, so the gateway wrote it: from now on it detects a loss of data. If data was lost before, restore it; when restoring key by key, write ${names.installed} last`,
    );
  }

  /** Logs each change between states that affect responses. */
  #logState(): void {
    const before = this.#state;
    const { state } = this.#mark;
    // While the state is unknown, the last known state remains in effect.
    if (state === before || state === 'unknown') return;
    this.#state = state;
    const { names, warn } = this.#options;
    const name = names.installed;
    if (state === 'wiped') {
      warn(
        `the store has lost its data: ${name} has changed. Unknown keys get 503 until the data is restored, or accepted as it is with "tollgate store init"`,
      );
    } else if (state === 'empty') {
      warn(
        `the store has no customers yet under ${names.prefix}. New installation: create the first customer and key ("tollgate customers create", "tollgate keys create"). Otherwise the data was lost: restore it, or accept the empty store with "tollgate store init". Until then, keys get 503`,
      );
    } else if (state === 'whole' && before === 'wiped') {
      warn(`the data of the store counts as complete again: ${name} is back`);
    }
  }
}

/** Resolves to the replies, or rejects with the first error. */
async function allOf(redis: RedisClient, commands: readonly Command[]): Promise<readonly unknown[]> {
  const replies = await redis.batch(commands);
  for (const [error] of replies) if (error !== null) throw error;
  return replies.map(([, reply]) => reply);
}

function isMissing({ id }: Mark): boolean {
  return id === null;
}

function newId(): string {
  return randomBytes(ID_BYTES).toString('hex');
}

/** Derives the state of the data from the marks that are read, without I/O. */
export class InstallationMark {
  #remembered: string | undefined;
  #records: 'unknown' | 'none' | 'some' = 'unknown';
  /** The remembered id was read from a store without records. */
  #isReplaceable = false;
  /** Names of marks that do not hold the remembered id. */
  readonly #lost = new Set<string>();

  get state(): DataState {
    if (this.#lost.size > 0) return 'wiped';
    if (this.#records === 'some' || this.#remembered?.startsWith(INIT_PREFIX)) return 'whole';
    return this.#records === 'none' ? 'empty' : 'unknown';
  }

  /** No id has been read from a mark yet. */
  get isNew(): boolean {
    return this.#remembered === undefined;
  }

  get hasRecord(): boolean {
    return this.#records === 'some';
  }

  /**
   * Updates the state from a mark that was read. Returns the value that must be written to the mark with SET NX, so
   * that another gateway's write wins; undefined when nothing must be written.
   */
  see({ name, id }: Mark): string | undefined {
    if (id === null) {
      if (this.#remembered === undefined) return undefined;
      this.#lose(name);
      return LOST_PREFIX + this.#remembered;
    }
    if (id.startsWith(LOST_PREFIX)) {
      this.#remember(id.slice(LOST_PREFIX.length));
      this.#lose(name);
    } else if (id === this.#remembered) {
      this.#lost.delete(name);
    } else if (id.startsWith(INIT_PREFIX)) {
      this.#remember(id);
      this.#lost.clear();
    } else if (this.#remembered === undefined) {
      this.#remember(id);
    } else if (this.#isReplaceable && this.#lost.size === 0) {
      this.#remembered = id;
    } else {
      this.#lose(name);
    }
    return undefined;
  }

  /** Notes that there is a record. */
  sawRecord(): void {
    this.#records = 'some';
  }

  /** Notes that a scan of all Redis keys found no record. */
  sawNoRecord(): void {
    if (this.#records === 'some') return;
    this.#records = 'none';
    this.#isReplaceable = true;
  }

  /** Notes that data may have been lost unnoticed: everything was deleted, or a connection was lost. */
  doubt(): void {
    this.#isReplaceable = false;
    if (this.#remembered === undefined || this.#records === 'none') this.#records = 'unknown';
  }

  #lose(name: string): void {
    this.#lost.add(name);
    // A restore brings records, so the search for them must be repeated when the mark is back.
    if (this.#records === 'none') this.#records = 'unknown';
  }

  #remember(id: string): void {
    this.#remembered = id;
    this.#isReplaceable = false;
  }
}
