/**
 * A client of a cluster: each command goes to the master that holds its first name, on that master's own connection.
 *
 * ioredis has a cluster client, and it is not this one: it sends commands again after a connection was lost, which may
 * have run, and it does not say on which connection. Here a command is sent again only when a member answered that it did
 * not run it (MOVED, ASK, TRYAGAIN).
 */
import { setTimeout } from 'node:timers/promises';
import { Command as RedisCommand } from 'ioredis';
import { type BatchReply, type Command, RedisClient } from './client.ts';
import { type Redirection, redirectionFrom, slotOf } from './cluster-slots.ts';
import type { RedisConnection } from './connection.ts';

/** A name may be moved once more while it is looked for. */
const MAX_REDIRECTIONS = 5;
/** Of several names in a slot that is being moved, some are here and some there; in a moment all are there. */
const TRY_AGAIN_MS = 20;

export interface Router {
  /** @throws StoreUnavailableError when nobody is known to hold the slot. */
  holderOf(slot: number): RedisConnection;
  /** The connection to the member that takes the slot over, once it was tried. No host: that of the slot's holder. */
  connectionTo(slot: number, host: string, port: number): Promise<RedisConnection>;
  /** Resolves when it is known who holds the slot now. No host: that of the one that held it. */
  moved(slot: number, host: string, port: number): Promise<void>;
}

interface Script {
  readonly lua: string;
  readonly numberOfKeys: number;
}

type Call<T> = (redis: RedisClient) => Promise<T>;

export class RoutedClient extends RedisClient {
  readonly #router: Router;
  readonly #scripts = new Map<string, Script>();

  constructor(router: Router) {
    // Never connected itself.
    super({ lazyConnect: true, protocol: 2, enableOfflineQueue: false });
    this.#router = router;
  }

  /** Defines on the client of a connection what was defined here. */
  prepare(redis: RedisClient): void {
    for (const [name, script] of this.#scripts) redis.defineCommand(name, script);
  }

  override defineCommand(name: string, { lua, numberOfKeys = 0 }: { lua: string; numberOfKeys?: number }): void {
    const script = { lua, numberOfKeys };
    this.#scripts.set(name, script);
    const run = (...args: (string | number)[]) => {
      const flat = args.flat();
      return this.#send(
        String(flat[0]),
        (redis) => defined(redis, name, flat),
        // By its text: what loads a script that is not there would come without ASKING.
        (redis) => redis.eval(lua, numberOfKeys, ...flat),
      );
    };
    Object.defineProperty(this, name, { value: run });
  }

  /** What every method of ioredis ends in. */
  override sendCommand(command: RedisCommand): Promise<unknown> {
    const [key] = command.getKeys();
    if (key === undefined) return Promise.reject(new Error(`${command.name} has no name to be routed by`));
    const { name, args } = command;
    const call: Call<unknown> = async (redis) =>
      redis.sendCommand(new RedisCommand(name, [...args], { replyEncoding: 'utf8' }));
    return this.#send(String(key), call, call);
  }

  /** In order for each member. A member that is away fails its own commands only. */
  override async batch(commands: readonly Command[]): Promise<readonly BatchReply[]> {
    const replies: BatchReply[] = new Array(commands.length);
    const groups = new Map<RedisConnection, number[]>();
    for (const [index, command] of commands.entries()) {
      try {
        const holder = this.#router.holderOf(slotOf(nameOf(command)));
        const group = groups.get(holder);
        if (group === undefined) groups.set(holder, [index]);
        else group.push(index);
      } catch (error) {
        replies[index] = failed(error);
      }
    }
    const send = async ([holder, indices]: [RedisConnection, number[]]) => {
      const own = commands.filter((_, index) => indices.includes(index));
      const answers = await holder
        .attempt((redis) => redis.batch(own))
        .catch((error: unknown) => own.map(() => failed(error)));
      for (const [i, index] of indices.entries()) replies[index] = answers[i] ?? failed(new Error('no reply'));
    };
    await Promise.all([...groups].map(send));
    const redirected = commands.map(async (command, index) => {
      if (redirectionFrom(replies[index]?.[0]) === undefined) return;
      const call: Call<unknown> = (redis) => redis.call(...(command as [string, ...(string | number)[]]));
      replies[index] = await this.#send(nameOf(command), call, call).then((reply) => [null, reply] as const, failed);
    });
    await Promise.all(redirected);
    return replies;
  }

  /** Sent in the turn of the call, so that whoever asks for the session in the same turn gets the right one. */
  async #send<T>(name: string, call: Call<T>, askingCall: Call<T>): Promise<T> {
    const slot = slotOf(name);
    let send = () => this.#router.holderOf(slot).attempt(call);
    for (let redirections = 0; ; redirections += 1) {
      try {
        return await send();
      } catch (error) {
        const redirection = redirectionFrom(error);
        if (redirection === undefined || redirections === MAX_REDIRECTIONS) throw error;
        send = await this.#follow(redirection, slot, call, askingCall);
      }
    }
  }

  async #follow<T>(redirection: Redirection, slot: number, call: Call<T>, askingCall: Call<T>) {
    if (redirection.kind === 'ask') {
      const member = await this.#router.connectionTo(slot, redirection.host, redirection.port);
      return () =>
        member.attempt(async (redis) => {
          const [, reply] = await Promise.all([redis.asking(), askingCall(redis)]);
          return reply;
        });
    }
    if (redirection.kind === 'moved') await this.#router.moved(slot, redirection.host, redirection.port);
    else await setTimeout(TRY_AGAIN_MS);
    return () => this.#router.holderOf(slot).attempt(call);
  }
}

/** Every command that is sent in a batch has its name first. */
function nameOf([, name]: Command): string {
  return String(name);
}

function failed(error: unknown): BatchReply {
  return [error instanceof Error ? error : new Error(String(error)), undefined];
}

function defined(redis: RedisClient, name: string, args: readonly (string | number)[]): Promise<unknown> {
  const script: unknown = Reflect.get(redis, name);
  if (typeof script !== 'function') throw new Error(`the script ${name} is not defined`);
  return Reflect.apply(script, redis, [...args]);
}
