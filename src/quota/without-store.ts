import type { Clock, Scheduler } from '../clock.ts';
import { StoreUnavailableError, type WindowStore } from '../store/store.ts';
import type { Account } from './account.ts';
import type { Admission } from './admission.ts';
import type { QuotaWithoutStore } from './leased-quota.ts';
import { LocalWindows } from './local-windows.ts';

export type OnStoreError = 'local' | 'deny' | 'allow';

export interface WithoutStoreOptions {
  readonly onError: OnStoreError;
  readonly windows: WindowStore;
  readonly storeIsUp: (customer: string) => boolean;
  /** The most instances that ran within the last hour, this one included. */
  readonly instances: () => number;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
}

/** How quotas are decided while the store is away. */
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

/** Not counted anywhere: the operator chose availability over the quota. */
function allow({ lastReply }: Account): Admission {
  return {
    outcome: 'admitted',
    mode: 'local',
    remaining: lastReply?.free ?? 0,
    beginBefore: Number.POSITIVE_INFINITY,
    beginBeforeWallMs: Number.POSITIVE_INFINITY,
    giveBack: () => {},
    resetSeconds: () => 1,
  };
}
