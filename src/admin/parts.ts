import type { Clock } from '../clock.ts';
import type { Logger } from '../observability/logger.ts';
import type { EffectiveLimit } from '../quota/limit.ts';
import type { Usage } from '../quota/usage.ts';
import type { CustomerRecord, RecordStore } from '../store/store.ts';
import type { GatewayStatus } from './status.ts';

/** What the admin listener is built from. */
export interface AdminParts {
  /** Undefined or empty: nobody gets in. */
  readonly token?: string | undefined;
  readonly records: RecordStore;
  effectiveLimit(customer: CustomerRecord): EffectiveLimit;
  /** Rejects with StoreUnavailableError. */
  usage(customer: string, requestsPerHour: number): Promise<Usage>;
  status(): GatewayStatus;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Must be cryptographically secure: keys are made of it. */
  randomBytes(size: number): Buffer;
}
