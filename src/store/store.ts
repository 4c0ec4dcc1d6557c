/**
 * The interfaces to the state that the gateway keeps outside its own memory: records (keys and customers), last uses of
 * keys, the maintenance, the audit log, windows (the hourly counters), usage reports, failed requests, notices and invalidations. Redis and the embedded
 * store implement them and pass the same contract tests.
 *
 * Every method that returns a promise rejects with {@link StoreUnavailableError} when the store cannot perform the call.
 */
import type { AnnouncedInstance, InstanceState } from './announced-instances.ts';
import type { AuditStore } from './audit.ts';
import type { FailedRequestStore } from './failed-requests.ts';
import type { Invalidations } from './invalidations.ts';
import type { KeyUseStore } from './key-uses.ts';
import type { MaintenanceStore } from './maintenance.ts';
import type { NoticeStore } from './notices.ts';
import type { NotifySecretStore } from './notify-secrets.ts';
import type { PeriodReader } from './period-reader.ts';
import type { PortalSessionStore } from './portal-sessions.ts';
import type { RecordStore } from './records.ts';
import type { UsageHistory } from './usage-history.ts';
import type { PresentPeriodReader, UsageReader, WindowStore } from './windows.ts';

export interface StoreStatus {
  readonly kind: 'redis' | 'embedded';
  readonly up: boolean;
  /** The last failure, in words for operators, without secrets. */
  readonly lastError?: string;
  /** The store is reachable but refuses quota writes, so quotas are decided without it. */
  readonly refusing: boolean;
  // What follows is only of a store that is another process.
  /** True once the store has replied for the first time since startup. */
  readonly reached?: boolean;
  /** Whether changes to keys and customers are pushed. */
  readonly invalidation?: 'connected' | 'disconnected';
  /** The store lost its data, so a missing record does not prove that it never existed. */
  readonly wiped?: boolean;
  /** No record is known in the store, which may mean that it lost its data. */
  readonly empty?: boolean;
  /** The store evicted keys for lack of memory: windows and usage history, and perhaps records. */
  readonly evicted?: boolean;
}

export interface Store {
  readonly records: RecordStore;
  readonly keyUses: KeyUseStore;
  readonly notifySecrets: NotifySecretStore;
  readonly portalSessions: PortalSessionStore;
  readonly maintenance: MaintenanceStore;
  readonly audit: AuditStore;
  readonly windows: WindowStore;
  readonly usages: UsageReader & PresentPeriodReader;
  readonly periods: PeriodReader;
  /** Undefined when the configuration turns the history off. */
  readonly usageHistory?: UsageHistory | undefined;
  readonly failedRequests: FailedRequestStore;
  readonly notices: NoticeStore;
  readonly invalidations: Invalidations;
  /**
   * Announces that this instance runs. Resolves to the number of instances announced within the last hour, including
   * this one, and to the store's time.
   */
  announce(
    instance: string,
    state?: InstanceState,
  ): Promise<{ readonly instances: number; readonly storeTimeMs: number }>;
  /** Resolves to the instances that were announced within the last hour and not withdrawn, oldest announcement last. */
  announced(): Promise<readonly AnnouncedInstance[]>;
  /** Deletes the announcement of this instance. */
  withdraw(instance: string): Promise<void>;
  /** Accepts the store's present data as intended, although data was lost. Undefined if the store never suspects a loss. */
  initialise?(): Promise<void>;
  /**
   * Returns whether calls are worth making now; with `customer`, calls about that customer's window. Must be cheap:
   * called for every request that needs the store.
   */
  isUp(customer?: string): boolean;
  status(): StoreStatus;
  close(): Promise<void>;
}

/** What a trial of the store found. */
export interface StoreFinding {
  readonly outcome: 'ok' | 'warning' | 'error';
  /** Without secrets. */
  readonly text: string;
}
