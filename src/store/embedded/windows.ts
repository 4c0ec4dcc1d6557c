/** The hourly windows in SQLite: window-arithmetic.ts over two tables, with one transaction per call. */
import { NotChargedError } from '../errors.ts';
import type { Store } from '../store.ts';
import { HOUR_MS, unlessClosed } from '../usage-history.ts';
import {
  charge,
  checkCharge,
  checkRequest,
  HOURLY,
  lineageOf,
  refund,
  reserve,
  unitsCounted,
  unitsSettled,
  type WindowHash,
  type WindowHead,
} from '../window-arithmetic.ts';
import type { Refund, UsageReader, WindowStore } from '../windows.ts';
import type { EmbeddedContext } from './database.ts';
import type { Sql } from './sql.ts';

/** No reply can be lost here, so one session lasts as long as the store is open. */
const SESSION = 1;
/**
 * At most this many idle windows are removed per new window: the tables shrink as fast as they grow, in small steps.
 */
const REMOVALS_PER_NEW_WINDOW = 2;
/** How long after its newest bucket expired a window counts as idle, to allow for clock steps. */
const IDLE_MARGIN_MS = 120_000;

interface EmbeddedWindowsOptions {
  /** Returns a new random epoch for a window, without white space. */
  readonly newEpoch: () => string;
  /** Adds units to the usage history, or subtracts as many as there are. `hour`: as in {@link Refund}. */
  readonly addToHistory?: ((customer: string, hour: number, units: number) => void) | undefined;
}

export function embeddedWindows(
  { sql, run, transact, clock }: EmbeddedContext,
  { newEpoch, addToHistory = () => undefined }: EmbeddedWindowsOptions,
): Pick<Store, 'windows' | 'usages'> {
  const hashOf = sqliteHashes(sql);

  /** To be called before the refunds change the window. */
  const refundHistory = (customer: string, hash: WindowHash, refunds: readonly Refund[], nowMs: number) => {
    const stored = hash.head();
    if (stored === undefined) return;
    const lineage = lineageOf(stored.epoch);
    for (const { epoch, hour, units } of refunds) {
      if (lineageOf(epoch) === lineage) addToHistory(customer, unlessClosed(hour, nowMs), -units);
    }
  };

  const windows: WindowStore = {
    async reserve(request) {
      checkRequest(request);
      return transact('reserve', () => {
        const hash = hashOf(request.customer);
        const nowMs = clock.nowMs();
        const isNew = hash.head() === undefined;
        const refunds = ofThisSession(request.refunds);
        refundHistory(request.customer, hash, refunds, nowMs);
        const grant = reserve(() => hash, HOURLY, nowMs, { ...request, refunds }, newEpoch());
        if (isNew && grant.granted > 0) removeIdle(sql, nowMs);
        addToHistory(request.customer, Math.floor(nowMs / HOUR_MS), grant.granted);
        return { ...grant, session: SESSION };
      });
    },

    async refund(customer, refunds) {
      const ours = ofThisSession(refunds);
      if (ours.length === 0) return 0;
      return transact('refund', () => {
        const hash = hashOf(customer);
        refundHistory(customer, hash, ours, clock.nowMs());
        return refund(hash, ours);
      });
    },

    async charge(customer, charged) {
      checkCharge(charged);
      return transact('report', () => {
        const nowMs = clock.nowMs();
        // Not in the hour in which they were admitted: it may be closed.
        for (const { units } of charged) addToHistory(customer, Math.floor(nowMs / HOUR_MS), units);
        return charge(hashOf(customer), HOURLY, nowMs, charged, newEpoch());
      }).catch((error: Error) => {
        // The transaction was rolled back.
        throw new NotChargedError(error.message, { cause: error });
      });
    },
  };

  const usages: UsageReader = {
    usedOf: (requested) =>
      run('read_usages', () => {
        const nowMs = clock.nowMs();
        return requested.map(({ customer }) => unitsCounted(hashOf(customer).buckets(), HOURLY, nowMs));
      }),
    settledOf: (customer) =>
      run('read_usages', () => {
        const hash = hashOf(customer);
        return unitsSettled(hash.buckets(), HOURLY, clock.nowMs(), hash.head()?.holdEndMs ?? 0);
      }),
  };

  return { windows, usages };
}

function ofThisSession(refunds: readonly Refund[]): readonly Refund[] {
  return refunds.filter(({ session }) => session === SESSION);
}

/** Returns a function that gives access to one customer's stored window. Call its methods only inside a transaction. */
export function sqliteHashes(sql: Sql): (customer: string) => WindowHash {
  return (customer) => ({
    head: () =>
      sql.get<WindowHead>`
        SELECT epoch, used, oldest, newest, hold_end_ms AS holdEndMs FROM window WHERE customer = ${customer}`,
    setHead: ({ epoch, used, oldest, newest, holdEndMs }) => {
      sql.run`
        INSERT OR REPLACE INTO window (customer, epoch, used, oldest, newest, hold_end_ms)
        VALUES (${customer}, ${epoch}, ${used}, ${oldest}, ${newest}, ${holdEndMs})`;
    },
    units: (bucket) =>
      sql.get<{ units: number }>`SELECT units FROM bucket WHERE customer = ${customer} AND bucket = ${bucket}`?.units,
    add: (bucket, units) => {
      sql.run`
        INSERT INTO bucket (customer, bucket, units) VALUES (${customer}, ${bucket}, ${units})
        ON CONFLICT DO UPDATE SET units = units + excluded.units`;
    },
    delete: (bucket) => {
      sql.run`DELETE FROM bucket WHERE customer = ${customer} AND bucket = ${bucket}`;
    },
    buckets: () => {
      const rows = sql.all<{ bucket: number; units: number }>`
        SELECT bucket, units FROM bucket WHERE customer = ${customer}`;
      return rows.map(({ bucket, units }) => [bucket, units] as const);
    },
  });
}

function removeIdle(sql: Sql, nowMs: number): void {
  const oldestInUse = Math.floor((nowMs - HOURLY.windowMs - IDLE_MARGIN_MS) / HOURLY.bucketMs);
  const idle = sql.all<{ customer: string }>`
    SELECT customer FROM window WHERE newest < ${oldestInUse} ORDER BY newest LIMIT ${REMOVALS_PER_NEW_WINDOW}`;
  for (const { customer } of idle) {
    sql.run`DELETE FROM window WHERE customer = ${customer}`;
    sql.run`DELETE FROM bucket WHERE customer = ${customer}`;
  }
}
