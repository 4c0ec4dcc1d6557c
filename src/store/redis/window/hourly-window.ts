/**
 * The hourly window in Redis: a limiter of rate-limiter-flexible with Tollgate's own script.
 *
 * The library's script counts fixed windows and lets refused calls consume; reserve.lua does neither. This class
 * overrides the three methods through which `consume()` reaches the store, so the library's limits, blocks and
 * delays do not apply. A grant smaller than the need is an expected outcome, so the call resolves.
 *
 * The library registers its script on the client under one fixed name. So there is only one instance per client, and it
 * is built before the first command is sent.
 */
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import type { AdmittedUnits, Grant, Refund, ReserveRequest, WindowStore } from '../../store.ts';
import { checkAdmitted, checkRequest, HOURLY, type WindowShape } from '../../window-arithmetic.ts';
import type { RedisChannel } from '../connection/channel.ts';
import type { RedisClient } from '../connection/client.ts';
import { windowName } from '../protocol/key-names.ts';
import type { ReservationFaults } from './reservation-faults.ts';
import {
  CHARGE_LUA,
  chargeArguments,
  parseGrant,
  parseUnits,
  REFUND_LUA,
  RESERVE_LUA,
  refundArguments,
  reserveArguments,
} from './window-scripts.ts';

interface WindowCommands {
  rlflxIncr(key: string, ...args: (string | number)[]): Promise<unknown>;
  tollgateRefund(key: string, ...args: (string | number)[]): Promise<unknown>;
  tollgateCharge(key: string, ...args: (string | number)[]): Promise<unknown>;
}

interface ConsumeOptions {
  readonly reservation: ReserveRequest;
}

export interface HourlyWindowOptions {
  /** Has no command timeout: even a late grant must arrive, so that it can be refunded. */
  readonly connection: RedisChannel;
  readonly keyPrefix: string;
  /** Returns a new random epoch for a window, without white space. */
  readonly newEpoch: () => string;
  readonly faults?: ReservationFaults;
  /** Default: one hour. Other shapes are for tests that cannot wait that long. */
  readonly shape?: WindowShape;
}

export class HourlyWindow extends RateLimiterRedis implements WindowStore {
  readonly #connection: RedisChannel;
  readonly #commands: WindowCommands;
  readonly #prefix: string;
  readonly #newEpoch: () => string;
  readonly #faults: ReservationFaults | undefined;
  readonly #shape: WindowShape;

  constructor({ connection, keyPrefix, newEpoch, faults, shape = HOURLY }: HourlyWindowOptions) {
    super({
      storeClient: connection.client,
      customIncrTtlLuaScript: RESERVE_LUA,
      keyPrefix: '',
      // Required by the library and unused here: every call carries its own limit, and the script knows the window.
      points: 1,
      duration: shape.windowMs / 1000,
    });
    connection.client.defineCommand('tollgateRefund', { numberOfKeys: 1, lua: REFUND_LUA });
    connection.client.defineCommand('tollgateCharge', { numberOfKeys: 1, lua: CHARGE_LUA });
    this.#commands = connection.client as RedisClient & WindowCommands;
    this.#connection = connection;
    this.#prefix = keyPrefix;
    this.#newEpoch = newEpoch;
    this.#faults = faults;
    this.#shape = shape;
  }

  async reserve(reservation: ReserveRequest): Promise<Grant> {
    checkRequest(reservation);
    const grant = this.#reserve(reservation);
    return this.#faults === undefined ? grant : this.#faults.ofReservation(reservation, grant);
  }

  async #reserve(reservation: ReserveRequest): Promise<Grant> {
    const options: ConsumeOptions = { reservation };
    const key = windowName(this.#prefix, reservation.customer);
    const result = await this.#connection.run('reserve', () => this.consume(key, reservation.need, { ...options }));
    return (result as GrantRes).grant;
  }

  async refund(customer: string, refunds: readonly Refund[]): Promise<number> {
    const key = windowName(this.#prefix, customer);
    const ours = this.#ofThisSession(key, refunds);
    if (ours.length === 0) return 0;
    return this.#connection.run('refund', async () =>
      parseUnits(await this.#commands.tollgateRefund(key, ...refundArguments(ours)), 'refund'),
    );
  }

  async report(customer: string, admitted: readonly AdmittedUnits[]): Promise<{ used: number }> {
    checkAdmitted(admitted);
    const key = windowName(this.#prefix, customer);
    const args = chargeArguments(admitted, this.#shape, this.#newEpoch());
    return this.#connection.run('report', async () => ({
      used: parseUnits(await this.#commands.tollgateCharge(key, ...args), 'charge'),
    }));
  }

  /** Called synchronously by `consume()`, so the session is the one on which the command is sent. */
  async _upsert(
    key: string,
    _points: number,
    _durationMs: number,
    _forceExpire: boolean,
    { reservation }: ConsumeOptions,
  ): Promise<Grant> {
    const session = this.#connection.sessionOf(key);
    const refunds = this.#ofThisSession(key, reservation.refunds);
    const args = reserveArguments({ ...reservation, refunds }, this.#shape, this.#newEpoch());
    return { ...parseGrant(await this.#commands.rlflxIncr(key, ...args)), session };
  }

  _getRateLimiterRes(_key: string, _points: number, grant: Grant): GrantRes {
    return new GrantRes(grant);
  }

  _afterConsume(
    resolve: (result: GrantRes) => void,
    _reject: (reason: unknown) => void,
    key: string,
    points: number,
    grant: Grant,
  ): void {
    resolve(this._getRateLimiterRes(key, points, grant));
  }

  /**
   * Keeps the refunds of the current session. After a reconnect, an earlier refund may already have run, and running it
   * twice would admit too many requests.
   */
  #ofThisSession(key: string, refunds: readonly Refund[]): readonly Refund[] {
    const current = this.#connection.sessionOf(key);
    return refunds.filter(({ session }) => session === current);
  }
}

/** The library's result with the whole grant. */
export class GrantRes extends RateLimiterRes {
  readonly grant: Grant;

  constructor(grant: Grant) {
    super(grant.free, grant.waitMs, grant.used, grant.granted > 0 && grant.used === grant.granted);
    this.grant = grant;
  }
}
