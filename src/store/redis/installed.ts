/**
 * Whether what the store does not know can be taken not to exist. That is in doubt when the store lost its data or holds
 * no record at all (see installation-mark.ts), and when Redis evicted keys (see evictions.ts).
 *
 * `<prefix>:installed` holds the mark of the installation; in a cluster each part of the slots has one more, and a read
 * of a record takes the mark of its part along.
 *
 * Each read of a record brings the mark along, Redis pushes its changes, and each new connection asks for it. So there
 * is no timer.
 */
import { setTimeout } from 'node:timers/promises';
import { StoreDoubtError } from '../store.ts';
import type { RedisChannel } from './channel.ts';
import type { Command, RedisClient } from './client.ts';
import { PART_TAGS, partOf, slotOf } from './cluster-slots.ts';
import { Evictions } from './evictions.ts';
import { type DataState, InstallationMark, initId, type Mark } from './installation-mark.ts';
import { CUSTOMER_RECORDS, everyName, installedName, installedPartName, KEY_RECORDS } from './key-names.ts';
import { SessionTask } from './session-task.ts';
import { UnexpectedReplyError } from './unexpected-reply.ts';

const SCAN_COUNT = '1000';
/** A gateway that starts on an empty cluster has written every mark after this time. */
const START_MS = 200;

export interface InstalledOptions {
  /** The connection on which records are read. */
  readonly connection: RedisChannel;
  readonly keyPrefix: string;
  /** A new random id. */
  readonly newId: () => string;
  readonly warn: (message: string) => void;
  /** Redis did not let us ask or write. */
  readonly onFailure: (error: unknown) => void;
  /** No mark is written. */
  readonly readOnly: boolean;
}

export class Installed {
  readonly #options: InstalledOptions;
  readonly #mark = new InstallationMark();
  readonly #evictions: Evictions;
  readonly #establishing: SessionTask;
  /** This gateway began to write the id, and perhaps did not finish. */
  #isFirst = false;
  #state: DataState = 'unknown';
  /** Marks to which `lost-…` is being written. */
  readonly #marking = new Set<string>();

  constructor(options: InstalledOptions) {
    const { connection, onFailure } = options;
    this.#options = options;
    this.#evictions = new Evictions(options);
    this.#establishing = new SessionTask({
      session: () => connection.sessions,
      work: () =>
        this.#establish().catch((error: unknown) => {
          // What was found out before it failed may be of another time than what will be.
          this.#mark.disturbed();
          throw error;
        }),
      onUndone: () => this.#mark.disturbed(),
      onFailure,
    });
  }

  get wiped(): boolean {
    return this.#state === 'wiped';
  }

  /** No record was found, or it could not be found out whether there is one. */
  get empty(): boolean {
    const { state } = this.#mark;
    return state === 'empty' || state === 'unknown';
  }

  /** Redis evicted keys, perhaps records. */
  get evicted(): boolean {
    return this.#evictions.happened;
  }

  /** Which mark would be lost together with this name. */
  markNear(name: string): string {
    const { connection, keyPrefix } = this.#options;
    const tag = connection.isCluster ? PART_TAGS[partOf(slotOf(name))] : undefined;
    return tag === undefined ? installedName(keyPrefix) : installedPartName(keyPrefix, tag);
  }

  /** Takes what a mark holds now. */
  see(mark: Mark): void {
    this.#seeAll([mark]);
    if (this.#mark.isNew || this.#mark.state === 'unknown') this.#establishing.redo();
  }

  /** A record was read or written: the store is not empty. */
  sawRecord(): void {
    if (this.#mark.hasRecord) return;
    this.#mark.sawRecord();
    this.#told();
  }

  /** A record of this name was written or deleted. */
  recordChanged(name: string): void {
    if (this.#mark.hasRecord) return;
    this.#options.connection.client.exists(name).then(
      (count) => count > 0 && this.sawRecord(),
      // The next read that finds a record says the same.
      () => undefined,
    );
  }

  /**
   * To be called where nothing was found, after the mark was seen.
   * @throws StoreDoubtError when that does not prove that nothing exists. A store without records is believed in what it
   *   says of anything but keys: that is for operators, who see what state it is in.
   */
  async requireProof(what: 'key' | 'other'): Promise<void> {
    const { state } = this.#mark;
    if (state === 'wiped') throw new StoreDoubtError('wiped');
    if (what === 'key' && state !== 'whole') throw new StoreDoubtError('empty');
    if (await this.#evictions.happenedBeforeNow()) throw new StoreDoubtError('evicted');
  }

  /** Declares that the store is meant as it is. */
  async initialise(): Promise<void> {
    const { connection, newId } = this.#options;
    const id = initId(newId());
    await this.#evictions.accept();
    await allOf(
      connection.client,
      this.#names.map((name) => ['set', name, id]),
    );
    // Read back: what was asked before and is answered along with this still has the id of before.
    this.#seeAll(await this.#ask());
  }

  /** To be called whenever the connection may have changed. */
  tend(): void {
    this.#establishing.tend();
    this.#evictions.tend();
  }

  /** Resolves once what the marks say and whether Redis evicted is known, or could not be asked for. */
  async settled(): Promise<void> {
    await Promise.all([this.#establishing.settled(), this.#evictions.settled()]);
  }

  /** A mark may have changed. */
  lookAgain(): void {
    this.#establishing.redo();
    this.#evictions.lookAgain();
  }

  /** To be called now and then: nothing else tells of evictions. */
  lookForEvictions(): void {
    this.#evictions.lookAgain();
  }

  /** Data may have been lost unseen. */
  disturbed(): void {
    this.#mark.disturbed();
    this.#establishing.redo();
  }

  /** Asks on another connection, for the proof of what was read there. */
  async lookOn(redis: RedisClient): Promise<void> {
    this.#seeAll(await this.#ask(redis));
  }

  close(): void {
    this.#establishing.close();
    this.#evictions.close();
  }

  /** The first is the one that counts. */
  get #names(): readonly string[] {
    const { connection, keyPrefix } = this.#options;
    const parts = connection.isCluster ? PART_TAGS.map((tag) => installedPartName(keyPrefix, tag)) : [];
    return [installedName(keyPrefix), ...parts];
  }

  #seeAll(marks: readonly Mark[]): void {
    // What is there first: it says what the missing ones have held.
    for (const mark of marks.toSorted((a, b) => Number(a.id === null) - Number(b.id === null))) {
      const toWrite = this.#mark.see(mark);
      if (toWrite !== undefined) void this.#markLost(mark.name, toWrite);
    }
    this.#told();
  }

  async #ask(redis: RedisClient = this.#options.connection.client): Promise<readonly Mark[]> {
    const names = this.#names;
    const ids = await allOf(
      redis,
      names.map((name) => ['get', name]),
    );
    return names.map((name, index) => ({ name, id: idFrom(ids[index]) }));
  }

  async #establish(): Promise<void> {
    let marks = await this.#ask();
    if (this.#mark.isNew && !this.#isFirst && marks.some(isMissing) && !marks.every(isMissing)) {
      // Another gateway that starts just now may be writing them.
      await setTimeout(START_MS);
      marks = await this.#ask();
    }
    if (this.#mark.isNew && marks.some(isMissing) && !this.#options.readOnly) {
      // A Redis that takes no writes may have records all the same. The next read that misses the mark tries again.
      await this.#writeMissing(marks).catch(this.#options.onFailure);
      marks = await this.#ask();
    }
    this.#seeAll(marks);
    if (this.#mark.state === 'unknown') {
      if (await this.#findRecord()) this.#mark.sawRecord();
      else this.#mark.sawNoRecord();
      this.#told();
    }
    if (this.#isFirst && this.#mark.hasRecord) this.#warnOfWritten();
    this.#isFirst = false;
  }

  /** Writes a new id when no mark is there, and the id to the parts when none of theirs is. */
  async #writeMissing([main, ...parts]: readonly Mark[]): Promise<void> {
    const { connection, newId } = this.#options;
    if (main === undefined) throw new UnexpectedReplyError('GET');
    const hasParts = !parts.every(isMissing);
    if (main.id === null && !hasParts && (await connection.client.set(main.name, newId(), 'NX')) === 'OK') {
      this.#isFirst = true;
    }
    const missing = parts.filter(isMissing);
    // Some that are missing where others are there have been lost.
    const id = this.#isFirst || !hasParts ? await connection.client.get(main.name) : null;
    if (id !== null && missing.length > 0) {
      await allOf(
        connection.client,
        missing.map(({ name }) => ['set', name, id, 'NX']),
      );
    }
  }

  /** Whether there is any record under the prefix. Looks through all names of the server, until one is found. */
  async #findRecord(): Promise<boolean> {
    const { connection, keyPrefix } = this.#options;
    for (const { client } of connection.servers) {
      let cursor = '0';
      do {
        const [next, names] = await client.scan(cursor, 'MATCH', everyName(keyPrefix), 'COUNT', SCAN_COUNT);
        const isRecord = (name: string) =>
          KEY_RECORDS.parse(keyPrefix, name) !== undefined || CUSTOMER_RECORDS.parse(keyPrefix, name) !== undefined;
        if (names.some(isRecord) || this.#mark.hasRecord) return true;
        cursor = next;
      } while (cursor !== '0');
    }
    return false;
  }

  /** So that gateways that start from now on know of the loss. */
  async #markLost(name: string, id: string): Promise<void> {
    const { connection, onFailure, readOnly } = this.#options;
    if (readOnly || this.#marking.has(name)) return;
    this.#marking.add(name);
    // After a failure the next read that finds the mark missing tries again.
    await connection.client.set(name, id, 'NX').catch(onFailure);
    this.#marking.delete(name);
  }

  #warnOfWritten(): void {
    const { keyPrefix, warn } = this.#options;
    warn(
      `${installedName(keyPrefix)} was missing though there are records, and was written: from now on a loss of data is noticed. If data was lost before, restore it; a restore key by key writes ${installedName(keyPrefix)} last`,
    );
  }

  /** Logs each change between states that matter to callers. */
  #told(): void {
    const before = this.#state;
    const { state } = this.#mark;
    // Until it is known again, what was said last holds.
    if (state === before || state === 'unknown') return;
    this.#state = state;
    const { keyPrefix, warn } = this.#options;
    const name = installedName(keyPrefix);
    if (state === 'wiped') {
      warn(
        `the store has lost its data: ${name} is not what it was. Unknown keys are answered with 503 until it is restored, or "tollgate store init" says that it is meant as it is`,
      );
    } else if (state === 'empty') {
      warn(
        `the store has no records under ${keyPrefix}: whether data was lost is not known. Unknown keys are answered with 503 until the first record is written, or "tollgate store init" says that it is meant to be empty`,
      );
    } else if (state === 'whole' && before === 'wiped') {
      warn(`the store counts as whole again: ${name} is there`);
    }
  }
}

/** The replies, or the first error. */
async function allOf(redis: RedisClient, commands: readonly Command[]): Promise<readonly unknown[]> {
  const replies = await redis.batch(commands);
  for (const [error] of replies) if (error !== null) throw error;
  return replies.map(([, reply]) => reply);
}

function isMissing({ id }: Mark): boolean {
  return id === null;
}

function idFrom(reply: unknown): string | null {
  if (reply !== null && typeof reply !== 'string') throw new UnexpectedReplyError('GET');
  return reply;
}
