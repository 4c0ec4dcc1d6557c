/**
 * The embedded store: SQLite in one file, for trying the gateway out and for a single small machine.
 *
 * Calls run in the gateway's own thread, about 60 µs for a write. They are promises like those of any other store, and
 * whatever SQLite throws (a full disk, a broken file) is a StoreUnavailableError. A store that can be read and not written,
 * because the disk is full, is up and refuses what quotas have to write.
 */
import { randomBytes } from 'node:crypto';
import type { Clock } from '../../clock.ts';
import { InvalidationListeners } from '../invalidation-listeners.ts';
import { type Store, type StoreObserver, StoreUnavailableError } from '../store.ts';
import { WriteRefusals } from '../write-refusals.ts';
import { embeddedAudit } from './audit.ts';
import { isWriteRefusal, openDatabase, rewriteHeader, totalChanges } from './database.ts';
import { embeddedKeyUses } from './key-uses.ts';
import type { RunOperation } from './operation.ts';
import { embeddedRecords } from './records.ts';
import { embeddedUsages, embeddedWindows } from './windows.ts';

const EPOCH_BYTES = 6;

export interface EmbeddedStoreOptions {
  /** Created, with its folder, if there is none. */
  readonly file: string;
  /** Its wall time is the store's time. */
  readonly clock: Clock;
  readonly observer: StoreObserver;
}

/** @throws StoreUnavailableError as {@link openDatabase}; the message says what to do. */
export async function openEmbeddedStore({ file, clock, observer }: EmbeddedStoreOptions): Promise<Store> {
  const database = openDatabase(file);
  const listeners = new InvalidationListeners();
  let up = true;
  let lastError: string | undefined;
  observer.up(true);
  const refusals = new WriteRefusals({ clock, changed: (reason) => observer.refusing?.(reason) });

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

  return {
    records: embeddedRecords(database, run, (change) => listeners.emit(change)),
    keyUses: embeddedKeyUses(database, run),
    audit: embeddedAudit(database, run),
    windows: embeddedWindows({ database, run, clock, newEpoch: () => randomBytes(EPOCH_BYTES).toString('base64url') }),
    usages: embeddedUsages({ database, run, clock }),
    // Nobody else writes to the file, so what is changed here is all that changes.
    invalidations: { connected: true, subscribe: listeners.subscribe },
    // A write that an idle gateway makes, too: it finds out whether the disk is full, and whether it still is.
    announce: () =>
      run('announce', () => {
        rewriteHeader(database);
        refusals.written();
        return 1;
      }),
    withdraw: () => run('withdraw', () => undefined),
    // A lost file is a new store, which nobody takes for the old one.
    initialise: () => run('initialise', () => undefined),
    isUp: () => up,
    status: () => ({
      kind: 'embedded',
      up,
      reached: true,
      ...(lastError !== undefined && { lastError }),
      invalidation: 'connected',
      wiped: false,
      empty: false,
      evicted: false,
      refusing: refusals.refusing,
    }),
    close: async () => {
      if (database.isOpen) database.close();
      up = false;
    },
  };
}
