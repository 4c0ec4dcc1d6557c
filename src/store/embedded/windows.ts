/** The hourly windows in SQLite: window-arithmetic.ts over two tables, with one transaction per call. */
import type { DatabaseSync } from 'node:sqlite';
import type { Refund, Store, UsageReader, WindowStore } from '../store.ts';
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
import type { EmbeddedContext } from './database.ts';

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
  { database, run, transact, clock }: EmbeddedContext,
  { newEpoch, addToHistory = () => undefined }: EmbeddedWindowsOptions,
): Pick<Store, 'windows' | 'usages'> {
  const hashOf = sqliteHashes(database);
  const removeIdle = idleRemoval(database);

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
        const grant = reserve(hash, HOURLY, nowMs, { ...request, refunds }, newEpoch());
        if (isNew && grant.granted > 0) removeIdle(nowMs);
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
export function sqliteHashes(database: DatabaseSync): (customer: string) => WindowHash {
  const selectHead = database.prepare(
    'SELECT epoch, used, oldest, newest, hold_end_ms AS holdEndMs FROM window WHERE customer = ?',
  );
  const upsertHead = database.prepare(
    `INSERT INTO window (customer, epoch, used, oldest, newest, hold_end_ms)
     VALUES (:customer, :epoch, :used, :oldest, :newest, :holdEndMs)
     ON CONFLICT (customer) DO UPDATE SET epoch = excluded.epoch, used = excluded.used, oldest = excluded.oldest,
       newest = excluded.newest, hold_end_ms = excluded.hold_end_ms`,
  );
  const selectUnits = database.prepare('SELECT units FROM bucket WHERE customer = ? AND bucket = ?');
  const addUnits = database.prepare(
    `INSERT INTO bucket (customer, bucket, units) VALUES (?, ?, ?)
     ON CONFLICT (customer, bucket) DO UPDATE SET units = units + excluded.units`,
  );
  const deleteBucket = database.prepare('DELETE FROM bucket WHERE customer = ? AND bucket = ?');
  const selectBuckets = database.prepare('SELECT bucket, units FROM bucket WHERE customer = ?');

  return (customer) => ({
    head: () => selectHead.get(customer) as WindowHead | undefined,
    setHead: ({ epoch, used, oldest, newest, holdEndMs }) => {
      upsertHead.run({ customer, epoch, used, oldest, newest, holdEndMs });
    },
    units: (bucket) => selectUnits.get(customer, bucket)?.units as number | undefined,
    add: (bucket, units) => {
      addUnits.run(customer, bucket, units);
    },
    delete: (bucket) => {
      deleteBucket.run(customer, bucket);
    },
    buckets: () => selectBuckets.all(customer).map((row) => [Number(row.bucket), Number(row.units)] as const),
  });
}

function idleRemoval(database: DatabaseSync): (nowMs: number) => void {
  const selectIdle = database.prepare('SELECT customer FROM window WHERE newest < ? ORDER BY newest LIMIT ?');
  const deleteWindow = database.prepare('DELETE FROM window WHERE customer = ?');
  const deleteBuckets = database.prepare('DELETE FROM bucket WHERE customer = ?');
  return (nowMs) => {
    const oldestInUse = Math.floor((nowMs - HOURLY.windowMs - IDLE_MARGIN_MS) / HOURLY.bucketMs);
    for (const { customer } of selectIdle.all(oldestInUse, REMOVALS_PER_NEW_WINDOW)) {
      deleteWindow.run(String(customer));
      deleteBuckets.run(String(customer));
    }
  };
}
