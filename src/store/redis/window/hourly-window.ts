/**
 * The hourly window in Redis: a limiter of rate-limiter-flexible with Tollgate's own script.
 *
 * The library's script counts fixed windows and lets refused calls consume; reserve.lua does neither. This class
 * overrides the three methods through which `consume()` reaches the store, so the library's limits, blocks and
 * delays do not apply. A grant smaller than the need is an expected outcome, so the call resolves.
 *
 * The reservations and refunds of one turn of the event loop are sent by one `consume()`, in one call of the script,
 * because the call costs more than its work on a window. A damaged window fails alone. In a cluster each reservation has a
 * call of its own: a call cannot span slots.
 *
 * The library registers its script on the client under one fixed name. So there is only one instance per client, and it
 * is built before the first command is sent.
 */
import { ReplyError } from 'ioredis';
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import type { Clock } from '../../../base/clock.ts';
import { Throttle } from '../../../base/throttle.ts';
import { uniqueIds } from '../../../base/unique-ids.ts';
import { NotRunError, StoreUnavailableError } from '../../errors.ts';
import { rootsIn } from '../../grants.ts';
import type { StoreObserver } from '../../observer.ts';
import type { UsageRetention } from '../../usage-history.ts';
import { checkCharge, checkRequest, HOURLY, type WindowShape } from '../../window-arithmetic.ts';
import {
  type ChargedUnits,
  type Grant,
  hourly,
  keyIn,
  type PeriodLimit,
  type Refund,
  type ReserveRequest,
  type WindowStore,
  windowsIn,
} from '../../windows.ts';
import { WriteRefusals } from '../../write-refusals.ts';
import type { RedisChannel } from '../connection/channel.ts';
import type { RedisClient, RunScript } from '../connection/client.ts';
import type { RedisKeyNames } from '../protocol/key-names.ts';
import { describe, UnexpectedReplyError } from '../protocol/redis-errors.ts';
import {
  CHARGE_LUA,
  chargeArguments,
  parseCharged,
  parseReserved,
  RESERVE_LUA,
  type Reserved,
  reserveArguments,
} from './window-scripts.ts';

/** Reservations per script call. Redis serves nobody else meanwhile: about a quarter of a millisecond. */
const MAX_RESERVATIONS_PER_CALL = 32;
/**
 * Temporary errors: Redis is starting, is moving a slot or is not a master. The connection handles them, and the store
 * counts as unreachable.
 */
const PASSING = /^(?:ASK|CLUSTERDOWN|LOADING|MASTERDOWN|MOVED|READONLY|TRYAGAIN) /;
/**
 * Errors that a script raises for one customer's damaged window. An ACL refusal within a script looks similar, and is
 * excluded.
 */
const DAMAGE = /^(?!.*The user executing the script)(?:WRONGTYPE |ERR .*(?:user_script|not one of Tollgate))/;
const DAMAGE_INTERVAL_MS = 60_000;
/** Customers whose damaged window is reported at that interval. Above this number some are reported more often. */
const DAMAGED_CUSTOMERS = 1000;

/** Of a call that only refunds. */
const NOTHING = hourly(0);

interface WindowCommands {
  /** The library's name for reserve.lua with one window. */
  readonly rlflxIncr: RunScript;
  /** The same for any number of windows. The first argument is their number. */
  readonly tollgateReserve: RunScript;
  readonly tollgateCharge: RunScript;
}

/** A reservation or refund that waits for the end of the turn, or for its reply. */
interface WindowCall {
  /** Of its first window. */
  readonly name: string;
  readonly request: ReserveRequest;
  readonly op: 'reserve' | 'refund';
  resolve(result: Reserved): void;
  reject(error: unknown): void;
}

interface ConsumeOptions {
  readonly calls: readonly WindowCall[];
}

export interface HourlyWindowOptions {
  /** Has no command timeout: even a late grant must arrive, so that it can be refunded. */
  readonly connection: RedisChannel;
  readonly names: RedisKeyNames;
  readonly clock: Clock;
  readonly observer: Pick<StoreObserver, 'refusing' | 'damagedWindow'>;
  /** Of the usage history. Undefined: none is written. */
  readonly retention?: UsageRetention | undefined;
  /** Default: one hour. Other shapes are for tests that cannot wait that long. */
  readonly shape?: WindowShape;
}

export class HourlyWindow extends RateLimiterRedis implements WindowStore {
  readonly #options: Required<HourlyWindowOptions>;
  readonly #commands: WindowCommands;
  readonly #refusals: WriteRefusals;
  readonly #damageReports: Throttle;
  /** Not random each time: every reservation needs an epoch, in case its window is new. */
  readonly #newEpoch = uniqueIds();
  /** The calls of this turn, by the name of their last window. */
  #turn = new Map<string, WindowCall>();

  constructor({ shape = HOURLY, retention, ...options }: HourlyWindowOptions) {
    const { connection, clock, observer } = options;
    super({
      storeClient: connection.client,
      customIncrTtlLuaScript: RESERVE_LUA,
      keyPrefix: '',
      // Required by the library and unused here: every call carries its own limit, and the script knows the window.
      points: 1,
      duration: shape.windowMs / 1000,
    });
    connection.client.defineCommand('tollgateReserve', { lua: RESERVE_LUA });
    connection.client.defineCommand('tollgateCharge', { lua: CHARGE_LUA });
    this.#commands = connection.client as RedisClient & WindowCommands;
    this.#options = { ...options, shape, retention };
    this.#refusals = new WriteRefusals(clock, (reason) => observer.refusing?.(reason));
    this.#damageReports = new Throttle(clock, DAMAGE_INTERVAL_MS, DAMAGED_CUSTOMERS);
  }

  /** Redis refuses quota writes. */
  get refusing(): boolean {
    return this.#refusals.refusing;
  }

  /** Observes the announcement of this instance, a write that even an idle gateway makes every 10 s. */
  async ofAnnouncement<Result>(announcement: Promise<Result>): Promise<Result> {
    try {
      const result = await announcement;
      this.#refusals.written();
      return result;
    } catch (error) {
      const reply = replyOf(error);
      if (reply !== undefined && !DAMAGE.test(reply)) this.#refusals.refused(reply);
      throw error;
    }
  }

  reserve(request: ReserveRequest): Promise<Grant> {
    return this.#add(request, 'reserve');
  }

  async refund(customer: string, refunds: readonly Refund[], root?: string): Promise<number> {
    const limits = root === undefined ? NOTHING : ([...NOTHING, { policy: 'key', amount: 0, root }] as const);
    const request: ReserveRequest = { customer, grant: '', need: 0, ahead: 0, limits, holdMs: 0, refunds };
    const { refunded } = await this.#add(request, 'refund');
    return refunded;
  }

  async charge(customer: string, charged: readonly ChargedUnits[], period?: PeriodLimit) {
    checkCharge(charged);
    const { connection, names, retention, shape } = this.#options;
    const windows = [undefined, ...rootsIn(charged)].map((root) => names.window(customer, root));
    const args = chargeArguments(charged, period, shape, this.#newEpoch(), retention);
    try {
      return await connection.run('report', async () =>
        parseCharged(await this.#commands.tollgateCharge(windows.length, ...windows, ...args), charged, period),
      );
    } catch (error) {
      throw notRunOr(error);
    }
  }

  /** The library's name for what `consume()` does: here, to run the script for the calls of one turn. */
  _upsert(
    name: string,
    _points: number,
    _durationMs: number,
    _forceExpire: boolean,
    { calls }: ConsumeOptions,
  ): Promise<readonly (Reserved | Error)[]> {
    const { connection, retention, shape } = this.#options;
    const op = calls.some((call) => call.op === 'reserve') ? 'reserve' : 'refund';
    return connection.run(op, async () => {
      const requests = calls.map(({ request }) => request);
      const args = reserveArguments(requests, shape, this.#newEpoch(), retention);
      const windows = calls.flatMap(({ request: { customer, limits } }) =>
        windowsIn(limits).map(({ root }) => this.#options.names.window(customer, root)),
      );
      const { rlflxIncr, tollgateReserve } = this.#commands;
      const reply = await (windows.length === 1
        ? rlflxIncr.call(this.#commands, name, ...args)
        : tollgateReserve.call(this.#commands, windows.length, ...windows, ...args));
      const results = parseReserved(reply, requests, shape);
      // One damaged window is no failure of the call. What fails every window is.
      if (results.every((result) => result instanceof Error)) throw results[0];
      return results;
    });
  }

  _getRateLimiterRes(_name: string, _points: number, consumed: readonly (Reserved | Error)[]): ConsumedRes {
    return new ConsumedRes(consumed);
  }

  _afterConsume(
    resolve: (result: ConsumedRes) => void,
    _reject: (reason: unknown) => void,
    name: string,
    points: number,
    consumed: readonly (Reserved | Error)[],
  ): void {
    resolve(this._getRateLimiterRes(name, points, consumed));
  }

  /** Adds a call to those of this turn. A second call for the same windows comes after the first. */
  #add(request: ReserveRequest, op: WindowCall['op']): Promise<Reserved> {
    return new Promise((resolve, reject) => {
      checkRequest(request);
      const { connection, names } = this.#options;
      const { customer, limits } = request;
      const name = names.window(customer);
      const call = { name, request, op, resolve, reject };
      if (connection.isCluster) {
        void this.#send([call]);
        return;
      }
      const key = keyIn(limits);
      const last = key ? names.window(customer, key.root) : name;
      if (this.#turn.has(last) || this.#turn.size === MAX_RESERVATIONS_PER_CALL) this.#sendTurn();
      if (this.#turn.size === 0) connection.client.atEndOfTurn(() => this.#sendTurn());
      this.#turn.set(last, call);
    });
  }

  #sendTurn(): void {
    if (this.#turn.size === 0) return;
    const calls = [...this.#turn.values()] as const;
    this.#turn = new Map();
    void this.#send(calls);
  }

  async #send(calls: readonly WindowCall[]): Promise<void> {
    const [{ name } = { name: '' }] = calls;
    try {
      const { consumed } = (await this.consume(name, calls.length, { calls })) as ConsumedRes;
      for (const [index, call] of calls.entries()) this.#settle(call, consumed[index]);
    } catch (error) {
      for (const call of calls) this.#fail(call, error);
    }
  }

  #settle(call: WindowCall, result: Reserved | Error | undefined): void {
    if (result === undefined || result instanceof Error) {
      this.#fail(call, new StoreUnavailableError(`Redis: ${describe(result)}`, { cause: result }));
      return;
    }
    // A reservation that grants nothing does not prove that Redis accepts writes.
    if (result.granted > 0) this.#refusals.written();
    call.resolve(result);
  }

  #fail(call: WindowCall, error: unknown): void {
    if (call.op === 'reserve') this.#noteFault(call.request, error);
    call.reject(notRunOr(error));
  }

  /** Distinguishes a Redis that refuses quota writes from a single damaged window. */
  #noteFault({ customer, need }: ReserveRequest, error: unknown): void {
    const reply = replyOf(error);
    if (reply === undefined) return;
    if (DAMAGE.test(reply) || isUnexpected(error)) {
      this.#options.observer.damagedWindow?.(customer, this.#damageReports.isDue(customer) ? reply : undefined);
    } else if (need > 0) {
      // Usage reads do not count: a gateway that only reads would never detect that writes are accepted again.
      this.#refusals.refused(reply);
    }
  }
}

/** Returns Redis' reply in place of a result; undefined when there was none, or the error is temporary. */
function replyOf(error: unknown): string | undefined {
  const cause = error instanceof StoreUnavailableError ? error.cause : undefined;
  if (!(cause instanceof Error && (cause instanceof ReplyError || isUnexpected(error)))) return undefined;
  const reply = describe(cause);
  return PASSING.test(reply) ? undefined : reply;
}

/** Returns a NotRunError if Redis refused the call, or the call was not sent: then the error has no cause. */
function notRunOr(error: unknown): unknown {
  if (!(error instanceof StoreUnavailableError)) return error;
  const wasNotRun = error.cause === undefined || (error.cause instanceof Error && error.cause instanceof ReplyError);
  return wasNotRun ? new NotRunError(error.message, { cause: error }) : error;
}

function isUnexpected(error: unknown): boolean {
  return error instanceof StoreUnavailableError && error.cause instanceof UnexpectedReplyError;
}

/** The library's result, which knows one window only, with those of all windows of the call. */
class ConsumedRes extends RateLimiterRes {
  readonly consumed: readonly (Reserved | Error)[];

  constructor(consumed: readonly (Reserved | Error)[]) {
    super();
    this.consumed = consumed;
  }
}
