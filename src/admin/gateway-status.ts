import type { CustomersWithoutPlan } from '../reload/customers-without-plan.ts';
import type { LastReload } from '../reload/reloader.ts';
import type { NoticeState } from '../store/notices.ts';
import type { StoreStatus } from '../store/store.ts';
import type { UpstreamStatus } from '../upstream/upstream.ts';

type NoticeCounts = Readonly<Record<NoticeState, number>>;

/** The status of one gateway. Times: wall time in ms. */
export interface GatewayStatus {
  readonly version: string;
  readonly startedAtMs: number;
  readonly uptimeSeconds: number;
  readonly config: {
    readonly file: string;
    readonly hash: string;
    readonly loadedAtMs: number;
    /** Undefined: no reload was reported since the start. */
    readonly lastReload: LastReload | undefined;
  };
  readonly store: StoreStatus;
  /** Instances that reported to the store within the last hour. */
  readonly instances: number;
  /** Undefined: notices are not configured, or were not counted yet. */
  readonly notices: NoticeCounts | undefined;
  /** Customers on plans that the running config does not have; undefined: not counted yet. */
  readonly customersWithoutPlan: CustomersWithoutPlan | undefined;
  readonly upstreams: readonly UpstreamStatus[];
  /** Empty if a single process does everything. */
  readonly workers: readonly WorkerStatus[];
}

/** A worker slot and the process that fills it. Times: wall time in ms. */
export interface WorkerStatus {
  readonly id: number;
  /** Undefined while a process is being replaced. */
  readonly pid: number | undefined;
  readonly startedAtMs: number | undefined;
  /** Whether the process serves requests and reaches the store. */
  readonly ready: boolean;
  /** Hash of the configuration that it runs; undefined until it runs one. */
  readonly configHash: string | undefined;
  /** How often the process in this slot was replaced. */
  readonly restarts: number;
}
