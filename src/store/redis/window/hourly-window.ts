/**
 * The hourly window in Redis: a limiter of rate-limiter-flexible with Tollgate's own script.
 *
 * The library's script counts fixed windows and lets refused calls consume; reserve.lua does neither. This class
 * overrides the three methods through which `consume()` reaches the store, so the library's limits, blocks and
 * delays do not apply. A grant smaller than the need is an expected outcome, so the call resolves.
 *
 * The reservations and refunds of one turn of the event loop are sent by one `consume()`, in one call of the script,
 * because the call costs more than its work on a window. A damaged window fails alone. In a cluster each window has a
 * call of its own: a call cannot span slots.
 *
 * The library registers its script on the client under one fixed name. So there is only one instance per client, and it
 * is built before the first command is sent.
 */
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import {
  type ChargedUnits,
  type Grant,
  type Refund,
  type ReserveRequest,
  StoreUnavailableError,
  type WindowStore,
} from '../../store.ts';
import type { UsageRetention } from '../../usage-history.ts';
import { checkCharge, checkRequest, HOURLY, type WindowShape } from '../../window-arithmetic.ts';
import type { RedisChannel } from '../connection/channel.ts';
import type { RedisClient, RunScript } from '../connection/client.ts';
import type { RedisKeyNames } from '../protocol/key-names.ts';
import { describe } from '../protocol/redis-errors.ts';
import type { ReservationFaults } from './reservation-faults.ts';
import {
  CHARGE_LUA,
  chargeArguments,
  parseCharged,
  parseReserved,
  RESERVE_LUA,
  type Reserved,
  reserveArguments,
} from './window-scripts.ts';

/** Windows per script call. Redis serves nobody else meanwhile: about a quarter of a millisecond. */
const MAX_WINDOWS_PER_CALL = 32;

interface WindowCommands {
  /** The library's name for reserve.lua with one window. */
  readonly rlflxIncr: RunScript;
  /** The same for any number of windows. The first argument is their number. */
  readonly tollgateReserve: RunScript;
  readonly tollgateCharge: RunScript;
}

/** A reservation or refund that waits for the end of the turn, or for its reply. */
interface WindowCall {
  readonly request: ReserveRequest;
  readonly op: 'reserve' | 'refund';
  resolve(result: Reserved & Pick<Grant, 'session'>): void;
  reject(error: unknown): void;
}

interface ConsumeOptions {
  /** By the name of their window. */
  readonly calls: ReadonlyMap<string, WindowCall>;
}

/** What the script did for each call. */
interface Consumed {
  readonly session: number;
  readonly results: readonly (Reserved | Error)[];
}

export interface HourlyWindowOptions {
  /** Has no command timeout: even a late grant must arrive, so that it can be refunded. */
  readonly connection: RedisChannel;
  readonly names: RedisKeyNames;
  /** Returns a new unique epoch for a window, without white space. */
  readonly newEpoch: () => string;
  readonly faults?: ReservationFaults;
  /** Of the usage history. Undefined: none is written. */
  readonly retention?: UsageRetention | undefined;
  /** Default: one hour. Other shapes are for tests that cannot wait that long. */
  readonly shape?: WindowShape;
}

export class HourlyWindow extends RateLimiterRedis implements WindowStore {
  readonly #connection: RedisChannel;
  readonly #commands: WindowCommands;
  readonly #names: RedisKeyNames;
  readonly #newEpoch: () => string;
  readonly #faults: ReservationFaults | undefined;
  readonly #shape: WindowShape;
  readonly #retention: UsageRetention | undefined;
  /** The calls of this turn, by the name of their window. */
  #turn = new Map<string, WindowCall>();

  constructor({ connection, names, newEpoch, faults, retention, shape = HOURLY }: HourlyWindowOptions) {
    super({
      storeClient: connection.client,
      customIncrTtlLuaScript: RESERVE_LUA,
      keyPrefix: '',
      // Required by the library and unused here: every call carries its own limit, and the script knows the window.
      points: 1,
      duration: shape.windowMs / 1000,
    });
    connection.client.defineCommand('tollgateReserve', { lua: RESERVE_LUA });
    connection.client.defineCommand('tollgateCharge', { numberOfKeys: 1, lua: CHARGE_LUA });
    this.#commands = connection.client as RedisClient & WindowCommands;
    this.#connection = connection;
    this.#names = names;
    this.#newEpoch = newEpoch;
    this.#faults = faults;
    this.#shape = shape;
    this.#retention = retention;
  }

  reserve(request: ReserveRequest): Promise<Grant> {
    return this.#add(this.#names.window(request.customer), request, 'reserve');
  }

  async refund(customer: string, refunds: readonly Refund[]): Promise<number> {
    const name = this.#names.window(customer);
    const request = { customer, need: 0, ahead: 0, limit: 0, holdMs: 0, refunds };
    if (ofSession(request, this.#connection.sessionOf(name)).refunds.length === 0) return 0;
    const { refunded } = await this.#add(name, request, 'refund');
    return refunded;
  }

  async charge(customer: string, charged: readonly ChargedUnits[]): Promise<{ used: number }> {
    checkCharge(charged);
    const name = this.#names.window(customer);
    const args = chargeArguments(charged, this.#shape, this.#newEpoch(), this.#retention);
    return this.#connection.run('report', async () => ({
      used: parseCharged(await this.#commands.tollgateCharge(name, ...args)),
    }));
  }

  /** The library's name for what `consume()` does: here, to run the script for the calls of one turn. */
  _upsert(
    name: string,
    _points: number,
    _durationMs: number,
    _forceExpire: boolean,
    { calls }: ConsumeOptions,
  ): Promise<Consumed> {
    const waiting = [...calls.values()];
    const op = waiting.some((call) => call.op === 'reserve') ? 'reserve' : 'refund';
    return this.#connection.run(op, async () => {
      const session = this.#connection.sessionOf(name);
      const requests = waiting.map(({ request }) => ofSession(request, session));
      const args = reserveArguments(requests, this.#shape, this.#newEpoch(), this.#retention);
      const { rlflxIncr, tollgateReserve } = this.#commands;
      const reply = await (calls.size === 1
        ? rlflxIncr.call(this.#commands, name, ...args)
        : tollgateReserve.call(this.#commands, calls.size, ...calls.keys(), ...args));
      const results = parseReserved(reply, requests, this.#shape);
      // One damaged window is no failure of the call. What fails every window is.
      if (results.every((result) => result instanceof Error)) throw results[0];
      return { session, results };
    });
  }

  _getRateLimiterRes(_name: string, _points: number, consumed: Consumed): ConsumedRes {
    return new ConsumedRes(consumed);
  }

  _afterConsume(
    resolve: (result: ConsumedRes) => void,
    _reject: (reason: unknown) => void,
    name: string,
    points: number,
    consumed: Consumed,
  ): void {
    resolve(this._getRateLimiterRes(name, points, consumed));
  }

  /** Adds a call to those of this turn. A second call for a window comes after the first. */
  #add(name: string, request: ReserveRequest, op: WindowCall['op']): Promise<Reserved & Pick<Grant, 'session'>> {
    return new Promise((resolve, reject) => {
      checkRequest(request);
      const call = { request, op, resolve, reject };
      if (this.#connection.isCluster) {
        void this.#send(new Map([[name, call]]));
        return;
      }
      if (this.#turn.has(name) || this.#turn.size === MAX_WINDOWS_PER_CALL) this.#sendTurn();
      if (this.#turn.size === 0) this.#connection.client.atEndOfTurn(() => this.#sendTurn());
      this.#turn.set(name, call);
    });
  }

  #sendTurn(): void {
    if (this.#turn.size === 0) return;
    const calls = this.#turn;
    this.#turn = new Map();
    void this.#send(calls);
  }

  async #send(calls: ReadonlyMap<string, WindowCall>): Promise<void> {
    const waiting = [...calls.values()];
    const [name = ''] = calls.keys();
    const options: ConsumeOptions = { calls };
    try {
      const { consumed } = (await this.consume(name, waiting.length, { ...options })) as ConsumedRes;
      for (const [index, call] of waiting.entries()) this.#settle(call, consumed.results[index], consumed.session);
    } catch (error) {
      for (const call of waiting) this.#fail(call, error);
    }
  }

  #settle(call: WindowCall, result: Reserved | Error | undefined, session: number): void {
    if (result === undefined || result instanceof Error) {
      this.#fail(call, new StoreUnavailableError(`Redis: ${describe(result)}`, { cause: result }));
      return;
    }
    if (call.op === 'reserve') this.#faults?.reserved(result);
    call.resolve({ ...result, session });
  }

  #fail(call: WindowCall, error: unknown): void {
    if (call.op === 'reserve') this.#faults?.notReserved(call.request, error);
    call.reject(error);
  }
}

/**
 * Keeps the refunds of this session. After a reconnect, an earlier refund may already have run, and running it twice
 * would admit too many requests.
 */
function ofSession(request: ReserveRequest, current: number): ReserveRequest {
  const { refunds } = request;
  if (refunds.every(({ session }) => session === current)) return request;
  return { ...request, refunds: refunds.filter(({ session }) => session === current) };
}

/** The library's result, which knows one window only, with those of all windows of the call. */
class ConsumedRes extends RateLimiterRes {
  readonly consumed: Consumed;

  constructor(consumed: Consumed) {
    super();
    this.consumed = consumed;
  }
}
