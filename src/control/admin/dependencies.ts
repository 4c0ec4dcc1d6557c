import type { Response } from 'express';
import type { RecordedChange, StatusDocument } from '../../api/admin/responses.ts';
import type { ADMIN_ROUTES } from '../../api/admin/routes.ts';
import type { Clock } from '../../base/clock.ts';
import type { AdminConfig, Disclosed, PortalConfig, Section } from '../../config/config.ts';
import type { TestedEndpoint } from '../../customers/notices/endpoints.ts';
import type { EffectiveLimit } from '../../customers/quota/effective-limit.ts';
import type { LeaseState, Usage } from '../../customers/quota/hourly-quota.ts';
import type { Logger } from '../../observability/logger.ts';
import type { Metrics } from '../../observability/metrics.ts';
import type { RecentRefusal } from '../../observability/recent-refusals.ts';
import type { PageFiles } from '../../pages/build-files.ts';
import type { AnnouncedInstance } from '../../store/announced-instances.ts';
import type { AuditStore } from '../../store/audit.ts';
import type { FailedRequestStore } from '../../store/failed-requests.ts';
import type { KeyUseStore } from '../../store/key-uses.ts';
import type { Maintenance, MaintenanceStore } from '../../store/maintenance.ts';
import type { NoticeStore } from '../../store/notices.ts';
import type { NotifySecretStore } from '../../store/notify-secrets.ts';
import type { PeriodReader } from '../../store/period-reader.ts';
import type { PortalSessionStore } from '../../store/portal-sessions.ts';
import type { CustomerRecord, TemporaryLimit } from '../../store/record-fields.ts';
import type { RecordStore } from '../../store/records.ts';
import type { Store, StoreStatus } from '../../store/store.ts';
import type { UsageHistory } from '../../store/usage-history.ts';
import type { Limits } from '../../store/windows.ts';
import type { SourceOf } from '../frame/document-of.ts';
import type { HandlersOf } from '../frame/routes.ts';
import type { Preview } from '../reload/preview.ts';
import type { LastReload, ReloadOutcome } from '../reload/reloader.ts';
import type { JwtVerifier } from './jwt.ts';

/** Dependencies of the admin listener, and without the credentials also of the portal listener. */
export interface AdminDependencies {
  /** The admin token. Undefined or empty: no token is accepted. */
  readonly token?: string | undefined;
  /** Undefined: no JWT is accepted. */
  readonly jwt?: JwtVerifier | undefined;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly records: RecordStore;
  readonly keyUses: Pick<KeyUseStore, 'lastUses'>;
  readonly notifySecrets: Pick<NotifySecretStore, 'rotate'>;
  /** Undefined without a portal. */
  readonly portal: PortalConfig | undefined;
  readonly portalSessions: PortalSessionStore;
  readonly maintenance: MaintenanceStore;
  readonly audit: AuditStore;
  readonly metrics: Pick<Metrics, 'adminRequest'>;
  /** Names by which the listener may be addressed. */
  readonly names: Pick<AdminConfig, 'host' | 'allowedHosts'>;
  /** Names of the configured plans. */
  readonly planNames: ReadonlySet<string>;
  /** The configured routes. */
  readonly routes: readonly Section<'routes'>[number][];
  /** Returns the current name of a plan, which may have been renamed; undefined if the plan is not configured. */
  currentPlan(plan: string): string | undefined;
  /** Returns all names of a plan that records may have: this one, and the former ones of a configured plan. */
  planNamesOf(plan: string): readonly string[];
  effectiveLimit(customer: CustomerRecord): EffectiveLimit;
  /** Wall time by which temporary limits and suspensions end. */
  readonly limitClock: Pick<Clock, 'nowMs'>;
  /** Returns where a limit, and that of a day or month, was set: `file:line`, or a description. */
  limitOrigins(
    customer: CustomerRecord,
    limit: EffectiveLimit,
  ): { readonly origin: string; readonly periodOrigin: string | undefined };
  /** Returns the running configuration, named as in the file, without secrets. */
  runningConfig(): Disclosed;
  /** Returns what the running file sets, as written there, without secrets. */
  runningFile(): Disclosed;
  /** Reloads the configuration file. Never rejects. */
  reload(): Promise<ReloadOutcome>;
  /** Returns what a posted file would change. Rejects with ConfigError, PreviewBusyError or StoreUnavailableError. */
  preview(content: Uint8Array): Promise<Preview>;
  /** Returns what all workers of this gateway together hold in memory for a customer. */
  leaseState(customer: string): LeaseState | Promise<LeaseState>;
  /** Returns the requests of a customer, or if undefined of all, that this gateway refused recently. */
  refusals(customer: string | undefined): readonly RecentRefusal[] | Promise<readonly RecentRefusal[]>;
  /** Resolves to the instances that share the store. Rejects with StoreUnavailableError. */
  announced(): Promise<readonly AnnouncedInstance[]>;
  /** Reads the usage of many customers. */
  readonly usages: Store['usages'];
  readonly periods: PeriodReader;
  /** Undefined when the configuration turns it off. */
  readonly history: UsageHistory | undefined;
  readonly failedRequests: FailedRequestStore;
  /** For how long failed requests are kept; undefined when the configuration turns them off. */
  readonly failedRequestHours: number | undefined;
  readonly notices: NoticeStore;
  /** Sends a test notice once to the customer's endpoint, or if undefined to those of the configuration. */
  testNotices(customer: CustomerRecord | undefined): Promise<readonly TestedEndpoint[]>;
  /** Returns the usage of one customer. Rejects with StoreUnavailableError. */
  usage(customer: string, limits: Limits): Promise<Usage>;
  status(): GatewayStatus;
  /** Returns the page and the files of the listener. Always the same ones. */
  pageFiles(): Promise<PageFiles>;
  /** Must be cryptographically secure: API keys and secrets are generated from it. */
  randomBytes(size: number): Buffer;
}

type Status = SourceOf<StatusDocument>;

/** The status of one gateway. Times: wall time in ms. */
export interface GatewayStatus
  extends Pick<
    Status,
    'version' | 'uptimeSeconds' | 'instances' | 'notices' | 'customersWithoutPlan' | 'check' | 'upstreams'
  > {
  readonly startedAtMs: number;
  /** `lastReload`: undefined if no reload was reported since the start. */
  readonly config: Pick<Status['config'], 'file' | 'hash'> & {
    readonly loadedAtMs: number;
    readonly lastReload: LastReload | undefined;
  };
  readonly store: StoreStatus;
  /** As this gateway knows it. Undefined: none is in force. */
  readonly maintenance: Maintenance | undefined;
  readonly workers: readonly WorkerStatus[];
}

/** A worker slot and the process that fills it. */
export type WorkerStatus = Omit<Status['workers'][number], 'startedAt'> & {
  readonly startedAtMs: number | undefined;
};

type DetailValue = string | number | boolean | null | readonly string[] | TemporaryLimit;
export type Details = Readonly<Record<string, DetailValue | undefined>>;

interface Change {
  readonly action: RecordedChange;
  readonly customer?: string;
  readonly keyId?: string;
  /** Undefined members are omitted. A name that ends in `Ms` is a wall time. */
  readonly details?: Details;
  /** The record before the change. Of it, only what `details` changes is recorded. */
  readonly before?: Details;
}

/** Never rejects: the change is already made, and an error response would make the client repeat it. */
export type RecordChange = (res: Response, change: Change) => Promise<void>;

/** What the routes use. */
export interface AdminContext extends AdminDependencies {
  readonly recordChange: RecordChange;
}

export type Handlers = HandlersOf<typeof ADMIN_ROUTES>;
