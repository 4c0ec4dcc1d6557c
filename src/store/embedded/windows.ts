/** The hourly windows in SQLite: window-arithmetic.ts over two tables, with one transaction per call. */
import { NotRunError } from '../errors.ts';
import {
  type CustomerCounters,
  chargeOnce,
  type GrantNotes,
  refundOnce,
  reserveOnce,
  type StoredGrant,
} from '../grants.ts';
import type { StoreOp } from '../observer.ts';
import { countInPeriod, type PeriodHash } from '../period-counts.ts';
import { type PeriodReader, periodsFrom } from '../period-reader.ts';
import type { Store } from '../store.ts';
import { firstOpenHour, HOUR_MS } from '../usage-history.ts';
import {
  checkCharge,
  checkRequest,
  HOURLY,
  unitsCounted,
  unitsSettled,
  type WindowHash,
  type WindowHead,
} from '../window-arithmetic.ts';
import { keyIn, rootsWith, type WindowRoot, type WindowStore } from '../windows.ts';
import type { EmbeddedContext } from './database.ts';
import type { Sql } from './sql.ts';

/**
 * At most this many idle windows are removed per new window: the tables shrink as fast as they grow, in small steps.
 */
const REMOVALS_PER_NEW_WINDOW = 2;
/** How long after its newest bucket expired a window counts as idle, to allow for clock steps. */
const IDLE_MARGIN_MS = 120_000;

interface EmbeddedWindowsOptions {
  /** Returns a new random epoch for a window, without white space. */
  readonly newEpoch: () => string;
  /** As {@link CustomerCounters.addToHistory}. */
  readonly addToHistory?: ((customer: string, hour: number, units: number) => number) | undefined;
}

export function embeddedWindows(
  { sql, run, transact, clock }: EmbeddedContext,
  { newEpoch, addToHistory = (_customer, _hour, units) => units }: EmbeddedWindowsOptions,
): Pick<Store, 'windows' | 'usages' | 'periods'> {
  const hashOf = sqliteHashes(sql);
  const countersOf = (customer: string): CustomerCounters => ({
    windowOf: (root) => hashOf(customer, root),
    periods: sqlitePeriods(sql, customer),
    notes: grantNotes(sql, customer),
    addToHistory: (hour, units) => addToHistory(customer, hour, units),
  });
  const transactOrNot = <T>(op: StoreOp, operation: () => T): Promise<T> =>
    transact(op, operation).catch((error: Error) => {
      // The transaction was rolled back.
      throw new NotRunError(error.message, { cause: error });
    });
  let sweptHour = 0;

  const windows: WindowStore = {
    async reserve({ customer, ...request }) {
      checkRequest(request);
      return transactOrNot('reserve', () => {
        const nowMs = clock.nowMs();
        const isNew = hashOf(customer, keyIn(request.limits)?.root).head() === undefined;
        const grant = reserveOnce(countersOf(customer), HOURLY, nowMs, request, newEpoch());
        if (isNew && grant.granted > 0) removeIdle(sql, nowMs);
        const hour = Math.floor(nowMs / HOUR_MS);
        if (hour !== sweptHour) sql.run`DELETE FROM grant_note WHERE hour < ${hour - 1}`;
        sweptHour = hour;
        return grant;
      });
    },

    refund: (customer, refunds, root) =>
      transactOrNot('refund', () => refundOnce(countersOf(customer), rootsWith(root), clock.nowMs(), refunds)),

    async charge(customer, charged, period) {
      checkCharge(charged);
      return transactOrNot('report', () =>
        chargeOnce(countersOf(customer), HOURLY, clock.nowMs(), charged, newEpoch(), period),
      );
    },
  };

  const usages: Store['usages'] = {
    usedOf: (requested) =>
      run('read_usages', () => {
        const nowMs = clock.nowMs();
        return requested.map(({ customer, root }) => unitsCounted(hashOf(customer, root).buckets(), HOURLY, nowMs));
      }),
    presentPeriodsOf: (requested) =>
      run('read_usages', () => {
        const nowMs = clock.nowMs();
        return requested.map(({ customer, period }) => countInPeriod(sqlitePeriods(sql, customer), period, nowMs, 0));
      }),
    settledOf: (customer, root) =>
      run('read_usages', () => {
        const hash = hashOf(customer, root);
        return unitsSettled(hash.buckets(), HOURLY, clock.nowMs(), hash.head()?.holdEndMs ?? 0);
      }),
  };

  const periods: PeriodReader = {
    openFromMs: async () => firstOpenHour(clock.nowMs()) * HOUR_MS,
    periodsOf: (customers) =>
      run('read_history', () => customers.map((customer) => periodsFrom(sqlitePeriods(sql, customer).entries()))),
  };

  return { windows, usages, periods };
}

function grantNotes(sql: Sql, customer: string): GrantNotes {
  return {
    get(id) {
      const row = sql.get<Omit<StoredGrant, 'epochs' | 'anchor'> & { epochs: string; anchor: string | null }>`
        SELECT granted, returned, hour, bucket, epochs, anchor FROM grant_note
        WHERE customer = ${customer} AND id = ${id}`;
      return row && { ...row, epochs: row.epochs.split(' '), anchor: row.anchor ?? undefined };
    },
    set(id, { granted, returned, hour, bucket, epochs, anchor = null }) {
      sql.run`
        INSERT OR REPLACE INTO grant_note (customer, id, granted, returned, hour, bucket, epochs, anchor)
        VALUES (${customer}, ${id}, ${granted}, ${returned}, ${hour}, ${bucket}, ${epochs.join(' ')}, ${anchor})`;
    },
    delete(id) {
      sql.run`DELETE FROM grant_note WHERE customer = ${customer} AND id = ${id}`;
    },
  };
}

/** Gives access to a customer's stored periods. Call its methods only inside a transaction. */
export function sqlitePeriods(sql: Sql, customer: string): PeriodHash {
  return {
    get: (field) =>
      sql.get<{ value: string }>`SELECT value FROM period WHERE customer = ${customer} AND field = ${field}`?.value,
    set: (field, value) => {
      sql.run`INSERT OR REPLACE INTO period (customer, field, value) VALUES (${customer}, ${field}, ${value})`;
    },
    delete: (field) => {
      sql.run`DELETE FROM period WHERE customer = ${customer} AND field = ${field}`;
    },
    entries: () => {
      const rows = sql.all<{ field: string; value: string }>`
        SELECT field, value FROM period WHERE customer = ${customer}`;
      return rows.map(({ field, value }) => [field, value] as const);
    },
  };
}

/**
 * Returns a function that gives access to a stored window of a customer: that of its hour, in which the root is '', or of
 * a key. Call its methods only inside a transaction.
 */
export function sqliteHashes(sql: Sql): (customer: string, root?: WindowRoot) => WindowHash {
  return (customer, root = '') => ({
    head: () =>
      sql.get<WindowHead>`
        SELECT epoch, used, oldest, newest, hold_end_ms AS holdEndMs FROM window
        WHERE customer = ${customer} AND root = ${root}`,
    setHead: ({ epoch, used, oldest, newest, holdEndMs }) => {
      sql.run`
        INSERT OR REPLACE INTO window (customer, root, epoch, used, oldest, newest, hold_end_ms)
        VALUES (${customer}, ${root}, ${epoch}, ${used}, ${oldest}, ${newest}, ${holdEndMs})`;
    },
    units: (bucket) =>
      sql.get<{ units: number }>`
        SELECT units FROM bucket WHERE customer = ${customer} AND root = ${root} AND bucket = ${bucket}`?.units,
    add: (bucket, units) => {
      sql.run`
        INSERT INTO bucket (customer, root, bucket, units) VALUES (${customer}, ${root}, ${bucket}, ${units})
        ON CONFLICT DO UPDATE SET units = units + excluded.units`;
    },
    delete: (bucket) => {
      sql.run`DELETE FROM bucket WHERE customer = ${customer} AND root = ${root} AND bucket = ${bucket}`;
    },
    buckets: () => {
      const rows = sql.all<{ bucket: number; units: number }>`
        SELECT bucket, units FROM bucket WHERE customer = ${customer} AND root = ${root}`;
      return rows.map(({ bucket, units }) => [bucket, units] as const);
    },
  });
}

function removeIdle(sql: Sql, nowMs: number): void {
  const oldestInUse = Math.floor((nowMs - HOURLY.windowMs - IDLE_MARGIN_MS) / HOURLY.bucketMs);
  const idle = sql.all<{ customer: string; root: string }>`
    SELECT customer, root FROM window WHERE newest < ${oldestInUse} ORDER BY newest LIMIT ${REMOVALS_PER_NEW_WINDOW}`;
  for (const { customer, root } of idle) {
    sql.run`DELETE FROM window WHERE customer = ${customer} AND root = ${root}`;
    sql.run`DELETE FROM bucket WHERE customer = ${customer} AND root = ${root}`;
  }
}
