import type { Disclosed } from '../config/config.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Held } from '../quota/leased-quota.ts';
import type { EffectiveLimit } from '../quota/limit.ts';
import type { Usage } from '../quota/usage.ts';
import type { RecentRefusal } from '../recent-refusals.ts';
import type { Preview } from '../reload/preview.ts';
import type { ReloadOutcome } from '../reload/reloader.ts';
import type { AuditStore, CustomerRecord, KeyUseStore, RecordStore, UsageReader } from '../store/store.ts';
import type { AccessParts } from './authorize.ts';
import type { AdminNames } from './host-check.ts';
import type { GatewayStatus } from './status.ts';

/** What the admin listener is built from. */
export interface AdminParts extends AccessParts {
  readonly records: RecordStore;
  readonly keyUses: Pick<KeyUseStore, 'lastUses'>;
  readonly audit: AuditStore;
  readonly metrics: Pick<Metrics, 'adminRequest'>;
  /** The Host names that are answered. */
  readonly names: AdminNames;
  /** The configured ones. */
  readonly planNames: ReadonlySet<string>;
  /** The current name of a plan that was renamed; undefined when the configuration does not know the plan. */
  currentPlan(plan: string): string | undefined;
  effectiveLimit(customer: CustomerRecord): EffectiveLimit;
  /** Where this limit was set: `file:line`, or words. */
  limitOrigin(customer: CustomerRecord, limit: EffectiveLimit): string;
  /** The configuration as it holds, without secrets, by the names of the file. */
  runningConfig(): Disclosed;
  /** Reads the configuration file again. Never rejects. */
  reload(): Promise<ReloadOutcome>;
  /** What a posted file would change. Rejects with ConfigError, PreviewBusyError and StoreUnavailableError. */
  preview(content: Uint8Array): Promise<Preview>;
  /** What this gateway, all its workers together, holds for a customer in memory. */
  held(customer: string): Held | Promise<Held>;
  /** What it refused a customer lately. */
  refusals(customer: string): readonly RecentRefusal[] | Promise<readonly RecentRefusal[]>;
  /** Of many customers. */
  readonly usages: UsageReader;
  /** Rejects with StoreUnavailableError. */
  usage(customer: string, requestsPerHour: number): Promise<Usage>;
  status(): GatewayStatus;
  /** Must be cryptographically secure: keys are made of it. */
  randomBytes(size: number): Buffer;
}
