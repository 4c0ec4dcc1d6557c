/** The lease algorithm (src/customers/quota) on a machine and a connection of its own, in virtual time. */
import type { Admission, Admitted, QuotaSettings } from '../../src/customers/quota/hourly-quota.ts';
import { LeasedQuota, type UsageLevels } from '../../src/customers/quota/leased-quota.ts';
import { createQuotaWithoutStore, type OnStoreError } from '../../src/customers/quota/without-store.ts';
import { StoreUnavailableError } from '../../src/store/errors.ts';
import type { WindowStore } from '../../src/store/windows.ts';
import type { Machine } from './machine.ts';
import type { StoreLink } from './simulated-store.ts';

export interface LeasingGatewayOptions {
  readonly machine: Machine;
  readonly link: StoreLink;
  /** What passes calls on to the link; left out: nothing between. */
  readonly windows?: WindowStore;
  readonly onError: OnStoreError;
  /** Gateways that share the store. */
  readonly instances: number;
  readonly timeoutMs: number;
  /** How many a gateway keeps in memory. */
  readonly customers: number;
  readonly levels?: UsageLevels | undefined;
}

export type Answer = Admission | { readonly outcome: 'unavailable' };

export class LeasingGateway {
  readonly machine: Machine;
  readonly link: StoreLink;
  readonly quota: LeasedQuota;

  constructor(options: LeasingGatewayOptions) {
    const { machine, link, windows = link, onError, instances, timeoutMs, customers, levels } = options;
    this.machine = machine;
    this.link = link;
    const shared = { windows, storeIsUp: () => link.isUp(), clock: machine, scheduler: machine };
    const withoutStore = createQuotaWithoutStore({
      ...shared,
      storeIsUp: (customer) => this.quota.storeResponds(customer),
      onError,
      instances: () => instances,
    });
    this.quota = new LeasedQuota({ ...shared, withoutStore, ...(levels && { levels }), timeoutMs, customers });
  }

  /** Calls `decided` once, at the latest when the store has replied. */
  admit(customer: string, settings: QuotaSettings, decided: (answer: Answer) => void, units = 1): void {
    const unavailable = (error: unknown) => {
      if (!(error instanceof StoreUnavailableError)) throw error;
      decided({ outcome: 'unavailable' });
    };
    this.machine.run(() => {
      try {
        const admission = this.quota.admit(customer, settings, units);
        if (admission instanceof Promise) admission.then(decided, unavailable);
        else decided(admission);
      } catch (error) {
        unavailable(error);
      }
    });
  }

  /** True time until the request may no longer begin upstream. */
  msLeft({ beginDeadlineMs, beginDeadlineWallMs }: Admitted): number {
    const { machine } = this;
    return Math.min(beginDeadlineMs - machine.monotonicMs(), beginDeadlineWallMs - machine.nowMs()) / machine.rate;
  }

  /** Whether the request may begin upstream, by the clocks of the machine. */
  mayBegin({ beginDeadlineMs, beginDeadlineWallMs }: Admitted): boolean {
    return this.machine.monotonicMs() < beginDeadlineMs && this.machine.nowMs() < beginDeadlineWallMs;
  }
}
