import { StoreUnavailableError } from '../../store/errors.ts';
import type { CustomerState } from './customer-state.ts';
import type { Admission } from './hourly-quota.ts';
import { LocalWindows, type LocalWindowsOptions } from './local-windows.ts';

/** Decides quotas while the store is unavailable. */
export interface QuotaWithoutStore {
  /** Throws StoreUnavailableError when it must not decide. */
  admit(state: CustomerState, units: number): Admission;
}

export type OnStoreError = 'local' | 'deny' | 'allow';

interface WithoutStoreOptions extends LocalWindowsOptions {
  readonly onError: OnStoreError;
}

/** Creates the fallback that decides quotas while the store is unavailable. */
export function createQuotaWithoutStore(options: WithoutStoreOptions): QuotaWithoutStore {
  switch (options.onError) {
    case 'local':
      return new LocalWindows(options);
    case 'allow':
      return { admit: allow };
    case 'deny':
      return { admit: deny };
  }
}

function deny(): Admission {
  throw new StoreUnavailableError('quotas cannot be decided without the store (store.on_error: deny)');
}

/** Counts nothing: the operator chose availability over the quota. */
function allow({ lastReply }: Pick<CustomerState, 'lastReply'>): Admission {
  return {
    outcome: 'admitted',
    mode: 'local',
    beginDeadlineMs: Number.POSITIVE_INFINITY,
    beginDeadlineWallMs: Number.POSITIVE_INFINITY,
    settle: () => {},
    remaining: (limit) => lastReply?.counts[limit]?.free ?? 0,
    resetSeconds: () => 1,
  };
}
