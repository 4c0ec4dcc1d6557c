import type { StatusDocument } from '../admin-api/responses.ts';
import type { LastReload } from '../reload/reloader.ts';
import type { StoreStatus } from '../store/store.ts';
import type { SourceOf } from './document-of.ts';

type Status = SourceOf<StatusDocument>;

/** The status of one gateway. Times: wall time in ms. */
export interface GatewayStatus
  extends Pick<Status, 'version' | 'uptimeSeconds' | 'instances' | 'notices' | 'customersWithoutPlan' | 'upstreams'> {
  readonly startedAtMs: number;
  /** `lastReload`: undefined if no reload was reported since the start. */
  readonly config: Pick<Status['config'], 'file' | 'hash'> & {
    readonly loadedAtMs: number;
    readonly lastReload: LastReload | undefined;
  };
  readonly store: StoreStatus;
  readonly workers: readonly WorkerStatus[];
}

/** A worker slot and the process that fills it. */
export type WorkerStatus = Omit<Status['workers'][number], 'startedAt'> & {
  readonly startedAtMs: number | undefined;
};
