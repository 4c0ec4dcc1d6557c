/**
 * The embedded store: SQLite in one file, for trying the gateway out and for a single small machine.
 *
 * Calls run in the gateway's own thread; a write takes about 60 µs. They return promises like those of any other store,
 * and every SQLite error (a full disk, a broken file) becomes a StoreUnavailableError. A store that can be read but not
 * written, because the disk is full, counts as up but refusing quota writes.
 */
import type { Clock } from '../../base/clock.ts';
import { uniqueIds } from '../../base/unique-ids.ts';
import type { AnnouncedInstance } from '../announced-instances.ts';
import { StoreUnavailableError } from '../errors.ts';
import { InvalidationListeners } from '../invalidations.ts';
import type { StoreObserver } from '../observer.ts';
import type { Store } from '../store.ts';
import type { UsageRetention } from '../usage-history.ts';
import { WriteRefusals } from '../write-refusals.ts';
import { embeddedAudit } from './audit.ts';
import {
  type EmbeddedContext,
  inTransaction,
  isWriteRefusal,
  openDatabase,
  type RunOperation,
  rewriteHeader,
  totalChanges,
} from './database.ts';
import { embeddedFailedRequests } from './failed-requests.ts';
import { embeddedKeyUses } from './key-uses.ts';
import { embeddedMaintenance } from './maintenance.ts';
import { embeddedNotices } from './notices.ts';
import { embeddedNotifySecrets } from './notify-secrets.ts';
import { embeddedPortalSessions } from './portal-sessions.ts';
import { embeddedRecords } from './records.ts';
import { Sql } from './sql.ts';
import { embeddedUsageHistory, historyWriter } from './usage-history.ts';
import { embeddedWindows } from './windows.ts';

interface EmbeddedStoreOptions {
  /** Created with its folder if missing. */
  readonly file: string;
  /** Its wall time is the store's time. */
  readonly clock: Clock;
  readonly observer: StoreObserver;
  /** How long the usage history is kept. Undefined: none is written. */
  readonly usage?: UsageRetention | undefined;
}

/** Opens the embedded store. @throws StoreUnavailableError as {@link openDatabase}; the message contains the remedy. */
export async function openEmbeddedStore({ file, clock, observer, usage }: EmbeddedStoreOptions): Promise<Store> {
  const database = openDatabase(file);
  const listeners = new InvalidationListeners();
  let up = true;
  let lastError: string | undefined;
  /** No other process uses the file. */
  let own: AnnouncedInstance | undefined;
  observer.up(true);
  const refusals = new WriteRefusals(clock, (reason) => observer.refusing?.(reason));

  const setUp = (isUp: boolean) => {
    if (isUp === up) return;
    up = isUp;
    observer.up(isUp, isUp ? undefined : lastError);
  };

  const run: RunOperation = async (op, operation) => {
    const startedMs = clock.monotonicMs();
    const seconds = () => (clock.monotonicMs() - startedMs) / 1000;
    try {
      const changesBefore = refusals.refusing ? totalChanges(database) : 0;
      const result = operation();
      setUp(true);
      if (refusals.refusing && totalChanges(database) !== changesBefore) refusals.written();
      observer.called(op, seconds(), false);
      return result;
    } catch (error) {
      lastError = error instanceof Error ? error.message : String(error);
      if (isWriteRefusal(error)) refusals.refused(lastError);
      else setUp(false);
      observer.called(op, seconds(), true);
      throw new StoreUnavailableError(`embedded store: ${lastError}`, { cause: error });
    }
  };

  const transact: RunOperation = (op, operation) => run(op, () => inTransaction(database, operation));
  const sql = new Sql(database);
  const context: EmbeddedContext = { database, sql, run, transact, clock };

  return {
    records: embeddedRecords(context, (change) => listeners.emit(change)),
    keyUses: embeddedKeyUses(context),
    notifySecrets: embeddedNotifySecrets(context),
    portalSessions: embeddedPortalSessions(context),
    maintenance: embeddedMaintenance(context, () => listeners.emit({ kind: 'maintenance' })),
    audit: embeddedAudit(context),
    ...embeddedWindows(context, {
      newEpoch: uniqueIds(),
      addToHistory: usage && historyWriter(sql),
    }),
    notices: embeddedNotices(context),
    failedRequests: embeddedFailedRequests(context),
    usageHistory: usage && embeddedUsageHistory(context, usage),
    // No other process writes to the file, so this store knows every change.
    invalidations: { connected: true, subscribe: listeners.subscribe },
    // An idle gateway announces itself too, so this write detects when the disk fills up and when it has space again.
    announce: (instance, state) =>
      run('announce', () => {
        rewriteHeader(database);
        refusals.written();
        own = { instance, announcedAtMs: clock.nowMs(), state };
        return { instances: 1, storeTimeMs: own.announcedAtMs };
      }),
    announced: async () => (own === undefined ? [] : [own]),
    withdraw: () =>
      run('withdraw', () => {
        own = undefined;
      }),
    isUp: () => up,
    // It never suspects data loss: a lost file is a new store.
    status: () => ({
      kind: 'embedded',
      up,
      refusing: refusals.refusing,
      ...(lastError !== undefined && { lastError }),
    }),
    close: async () => {
      if (database.isOpen) database.close();
      up = false;
    },
  };
}
