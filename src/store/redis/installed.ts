/**
 * Whether the store still is the one that this gateway began with.
 *
 * `<prefix>:installed` holds a random id, written into an empty prefix only. Who has seen it and finds it gone, or finds
 * another one, knows that the data was lost: what the store does not know is no proof any more that it does not exist.
 * That ends when the id is back, because a backup was restored, or when somebody wrote an id that begins with `init-`:
 * the empty store is meant.
 *
 * A prefix that other programs filled before has no id; nothing is written there, and nothing is checked.
 *
 * A master of a cluster may lose what it holds while the others keep theirs. So the id stands in each part of the slots
 * once more, and who looks for a record reads the one of its part.
 *
 * Every read of a record brings the id along, Redis pushes its changes, and each new connection asks for it. So there is
 * no timer.
 */
import type { RedisChannel } from './channel.ts';
import type { Command, RedisClient } from './client.ts';
import { PART_TAGS, partOf, slotOf } from './cluster-slots.ts';
import { everyName, installedName, installedPartName, instancesName } from './key-names.ts';
import { SessionTask } from './session-task.ts';
import { UnexpectedReplyError } from './unexpected-reply.ts';

const MEANT_PREFIX = 'init-';
const SCAN_COUNT = '1000';
/** On a server shared with more than a million foreign keys it stays open whether the prefix is empty. */
const MAX_SCAN_STEPS = 1000;

export interface InstalledOptions {
  /** The connection on which records are read. */
  readonly connection: RedisChannel;
  readonly keyPrefix: string;
  /** A new random id. */
  readonly newId: () => string;
  readonly warn: (message: string) => void;
  /** Redis did not let us ask or write. */
  readonly onFailure: (error: unknown) => void;
}

interface Held {
  readonly name: string;
  readonly id: string | null;
}

export class Installed {
  readonly #options: InstalledOptions;
  readonly #asking: SessionTask;
  #remembered: string | undefined;
  /** Only the first connection may find an empty prefix that is new; a later one finds one that was emptied. */
  #hasAsked = false;
  /** This gateway began to write the id, and perhaps did not finish. */
  #isFirst = false;
  /** Names that do not hold the id any more. */
  readonly #lost = new Set<string>();
  #wiped = false;

  constructor(options: InstalledOptions) {
    const { connection, onFailure } = options;
    this.#options = options;
    this.#asking = new SessionTask({
      session: () => connection.sessions,
      work: async () => {
        const held = await (this.#hasAsked ? this.#ask() : this.#askOrWrite());
        this.#hasAsked = true;
        this.#seeAll(held);
      },
      onFailure,
    });
  }

  get wiped(): boolean {
    return this.#wiped;
  }

  /** Which name would be lost together with this one. */
  nameNear(name: string): string {
    const { connection, keyPrefix } = this.#options;
    const tag = connection.isCluster ? PART_TAGS[partOf(slotOf(name))] : undefined;
    return tag === undefined ? installedName(keyPrefix) : installedPartName(keyPrefix, tag);
  }

  /** Takes what such a name holds now; true when the store counts as wiped. */
  see({ name, id }: Held): boolean {
    const isOurs = id === this.#remembered || (id === null && this.#remembered === undefined);
    if (isOurs) {
      this.#lost.delete(name);
    } else if (id !== null && (this.#remembered === undefined || id.startsWith(MEANT_PREFIX))) {
      this.#remembered = id;
      this.#lost.clear();
    } else {
      this.#lost.add(name);
    }
    this.#setWiped(this.#lost.size > 0);
    return this.#wiped;
  }

  /** Writes a new id that says that the store is meant as it is. */
  async initialise(): Promise<void> {
    const { connection, newId } = this.#options;
    const id = MEANT_PREFIX + newId();
    await allOf(
      connection.client,
      this.#names.map((name) => ['set', name, id]),
    );
    // Read back: what was asked before and is answered along with this still has the id of before.
    this.#seeAll(await this.#ask());
  }

  /** To be called whenever the connection may have changed. */
  tend(): void {
    this.#asking.tend();
  }

  /** Resolves once the id is known, or could not be asked for. */
  settled(): Promise<void> {
    return this.#asking.settled();
  }

  /** Asks again. A failure is left to the next read. */
  async lookAgain(): Promise<void> {
    if (this.#remembered === undefined) return;
    await this.#ask().then(
      (held) => this.#seeAll(held),
      () => undefined,
    );
  }

  /** Asks on another connection; true when the store counts as wiped. */
  async look(redis: RedisClient): Promise<boolean> {
    this.#seeAll(await this.#ask(redis));
    return this.#wiped;
  }

  close(): void {
    this.#asking.close();
  }

  /** The first is the one that counts. */
  get #names(): readonly string[] {
    const { connection, keyPrefix } = this.#options;
    const parts = connection.isCluster ? PART_TAGS.map((tag) => installedPartName(keyPrefix, tag)) : [];
    return [installedName(keyPrefix), ...parts];
  }

  #seeAll(held: readonly Held[]): void {
    for (const each of held) this.see(each);
  }

  async #ask(redis: RedisClient = this.#options.connection.client): Promise<readonly Held[]> {
    const names = this.#names;
    const ids = await allOf(
      redis,
      names.map((name) => ['get', name]),
    );
    return names.map((name, index) => ({ name, id: idFrom(ids[index]) }));
  }

  async #askOrWrite(): Promise<readonly Held[]> {
    const { connection, keyPrefix, newId } = this.#options;
    const [main, ...parts] = await this.#ask();
    if (main === undefined) throw new UnexpectedReplyError('GET');
    const mayWrite = main.id === null && (await this.#prefixIsEmpty());
    if (mayWrite && (await connection.client.set(main.name, newId(), 'NX')) === 'OK') this.#isFirst = true;
    if (main.id === null && !mayWrite) {
      this.#options.warn(
        `${installedName(keyPrefix)} is not there, so it will not be noticed if the store loses its data: run "tollgate store init" once`,
      );
      return [main, ...parts];
    }
    // Another gateway that starts at this moment may have been first.
    const id = await connection.client.get(main.name);
    // Some that are missing where others are there have been lost.
    const areNew = mayWrite || this.#isFirst || parts.every((part) => part.id === null);
    if (areNew && id !== null)
      await allOf(
        connection.client,
        parts.map(({ name }) => ['set', name, id]),
      );
    return this.#ask();
  }

  async #prefixIsEmpty(): Promise<boolean> {
    const { connection, keyPrefix } = this.#options;
    const own = [...this.#names, instancesName(keyPrefix)];
    for (const { client } of connection.servers) {
      let cursor = '0';
      for (let step = 0; step === 0 || cursor !== '0'; step += 1) {
        if (step === MAX_SCAN_STEPS) return false;
        const [next, names] = await client.scan(cursor, 'MATCH', everyName(keyPrefix), 'COUNT', SCAN_COUNT);
        if (names.some((name) => !own.includes(name))) return false;
        cursor = next;
      }
    }
    return true;
  }

  #setWiped(wiped: boolean): void {
    if (wiped === this.#wiped) return;
    this.#wiped = wiped;
    const { keyPrefix, warn } = this.#options;
    const name = installedName(keyPrefix);
    warn(
      wiped
        ? `the store has lost its data: ${name} is not what it was. Unknown keys are answered with 503 until it is restored, or "tollgate store init" says that it is meant to be empty`
        : `the store counts as whole again: ${name} is there`,
    );
  }
}

/** The replies, or the first error. */
async function allOf(redis: RedisClient, commands: readonly Command[]): Promise<readonly unknown[]> {
  const replies = await redis.batch(commands);
  for (const [error] of replies) if (error !== null) throw error;
  return replies.map(([, reply]) => reply);
}

function idFrom(reply: unknown): string | null {
  if (reply !== null && typeof reply !== 'string') throw new UnexpectedReplyError('GET');
  return reply;
}
