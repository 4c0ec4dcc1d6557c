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
 * Every read of a record brings the id along, Redis pushes its changes, and each new connection asks for it. So there is
 * no timer.
 */
import type { RedisConnection } from './connection.ts';
import { everyName, installedName, instancesName } from './key-names.ts';
import { SessionTask } from './session-task.ts';

const MEANT_PREFIX = 'init-';
const SCAN_COUNT = '1000';
/** On a server shared with more than a million foreign keys it stays open whether the prefix is empty. */
const MAX_SCAN_STEPS = 1000;

export interface InstalledOptions {
  /** The connection on which records are read. */
  readonly connection: RedisConnection;
  readonly keyPrefix: string;
  /** A new random id. */
  readonly newId: () => string;
  readonly warn: (message: string) => void;
  /** Redis did not let us ask or write. */
  readonly onFailure: (error: unknown) => void;
}

export class Installed {
  readonly #options: InstalledOptions;
  readonly #asking: SessionTask;
  #remembered: string | undefined;
  /** Only the first connection may find an empty prefix that is new; a later one finds one that was emptied. */
  #hasAsked = false;
  #wiped = false;

  constructor(options: InstalledOptions) {
    const { connection, onFailure } = options;
    this.#options = options;
    this.#asking = new SessionTask({
      session: () => (connection.connected ? String(connection.session) : undefined),
      work: async () => {
        this.see(await (this.#hasAsked ? this.#ask() : this.#askOrWrite()));
        this.#hasAsked = true;
      },
      onFailure,
    });
  }

  get wiped(): boolean {
    return this.#wiped;
  }

  /** Takes what `installed` holds now; true when the store counts as wiped. */
  see(id: string | null): boolean {
    const isOurs = id === this.#remembered || (id === null && this.#remembered === undefined);
    if (!isOurs && id !== null && (this.#remembered === undefined || id.startsWith(MEANT_PREFIX))) {
      this.#remembered = id;
      this.#setWiped(false);
    } else {
      this.#setWiped(!isOurs);
    }
    return this.#wiped;
  }

  /** Writes a new id that says that the store is meant as it is. */
  async initialise(): Promise<void> {
    const { connection, keyPrefix, newId } = this.#options;
    const id = MEANT_PREFIX + newId();
    await connection.client.set(installedName(keyPrefix), id);
    this.see(id);
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
      (id) => this.see(id),
      () => undefined,
    );
  }

  close(): void {
    this.#asking.close();
  }

  #ask(): Promise<string | null> {
    const { connection, keyPrefix } = this.#options;
    return connection.client.get(installedName(keyPrefix));
  }

  async #askOrWrite(): Promise<string | null> {
    const { connection, keyPrefix, newId } = this.#options;
    const id = await this.#ask();
    if (id !== null) return id;
    if (await this.#prefixIsEmpty()) {
      await connection.client.set(installedName(keyPrefix), newId(), 'NX');
    } else {
      this.#options.warn(
        `${installedName(keyPrefix)} is not there, so it will not be noticed if the store loses its data: run "tollgate store init" once`,
      );
    }
    // Another gateway that starts at this moment may have been first.
    return this.#ask();
  }

  async #prefixIsEmpty(): Promise<boolean> {
    const { connection, keyPrefix } = this.#options;
    const own = [installedName(keyPrefix), instancesName(keyPrefix)];
    let cursor = '0';
    for (let step = 0; step < MAX_SCAN_STEPS; step += 1) {
      const [next, names] = await connection.client.scan(cursor, 'MATCH', everyName(keyPrefix), 'COUNT', SCAN_COUNT);
      if (names.some((name) => !own.includes(name))) return false;
      if (next === '0') return true;
      cursor = next;
    }
    return false;
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
