/**
 * Decides whether one more request of a customer fits into its hour.
 *
 * Every decision is one atomic call to the store. A unit is counted at the last instant at which its request may
 * begin upstream, which is HOLD_MS after the store's clock read; a request that has not begun by then must not begin,
 * and gives its unit back. A call that is answered too late for its waiter gives everything back as well, so that a
 * slow store does not burn a customer's hour.
 */
import type { Clock } from '../clock.ts';
import { type Grant, StoreUnavailableError, type WindowStore } from '../store/store.ts';
import type { Usage } from './usage.ts';

/** From the store's decision to the first byte upstream. */
const HOLD_MS = 1000;
/** Share of a hold that may be used, and of a wait that is not promised: clocks drift by less than this. */
const DRIFT = 0.01;
const RETRY_DRIFT = 1.0005;
const WINDOW_SECONDS = 3600;

export type Admission =
  | {
      readonly outcome: 'admitted';
      readonly remaining: number;
      /** Monotonic ms; after it the request must not begin upstream. */
      readonly beginBefore: number;
      /** Gives the unit back. Call it at most once, and only if the request did not begin upstream. */
      giveBack(): void;
      resetSeconds(): number;
    }
  | { readonly outcome: 'refused'; readonly remaining: number; resetSeconds(): number };

export interface HourlyQuota {
  /** Rejects with StoreUnavailableError when the store does not answer within the timeout. */
  admit(customer: string, limit: number): Promise<Admission>;
  /** What enforcement would see now, without taking anything. Rejects like `admit`. */
  usage(customer: string, limit: number): Promise<Usage>;
}

export interface HourlyQuotaOptions {
  readonly windows: WindowStore;
  readonly clock: Clock;
  readonly timeoutMs: number;
}

export function createHourlyQuota({ windows, clock, timeoutMs }: HourlyQuotaOptions): HourlyQuota {
  function refund(customer: string, grant: Grant, units: number): void {
    const { epoch, bucket, session } = grant;
    // Sent once: a refund whose fate is unknown is forgone, because one that ran twice would admit too many.
    windows.refund(customer, [{ epoch, bucket, units, session }]).catch(() => {});
  }

  function reserve(customer: string, need: number, limit: number): Promise<Grant> {
    const call = windows.reserve({ customer, need, ahead: 0, limit, holdMs: HOLD_MS, giveBacks: [] });
    return new Promise((resolve, reject) => {
      let waiting = true;
      const timer = setTimeout(() => {
        waiting = false;
        reject(new StoreUnavailableError(`no answer about the quota within ${timeoutMs} ms`));
      }, timeoutMs);
      call.then(
        (grant) => {
          clearTimeout(timer);
          if (waiting) resolve(grant);
          else if (grant.granted > 0) refund(customer, grant, grant.granted);
        },
        (error) => {
          clearTimeout(timer);
          reject(error);
        },
      );
    });
  }

  /** Seconds until more becomes free, never less than the truth: whoever waits that long, alone, is admitted. */
  function resetCountdown(grant: Grant): () => number {
    const receivedAt = clock.monotonicMs();
    return () => {
      const leftMs = grant.waitMs - (clock.monotonicMs() - receivedAt);
      return Math.max(1, Math.ceil((RETRY_DRIFT * leftMs) / 1000));
    };
  }

  return {
    async admit(customer, limit) {
      const askedAt = clock.monotonicMs();
      const grant = await reserve(customer, 1, limit);
      const resetSeconds = resetCountdown(grant);
      if (grant.granted < 1) return { outcome: 'refused', remaining: 0, resetSeconds };
      return {
        outcome: 'admitted',
        remaining: grant.free,
        beginBefore: askedAt + HOLD_MS * (1 - DRIFT),
        giveBack: () => refund(customer, grant, 1),
        resetSeconds,
      };
    },

    async usage(customer, limit) {
      const grant = await reserve(customer, 0, limit);
      return {
        limit,
        used: grant.used,
        remaining: grant.free,
        resetSeconds: grant.used > 0 ? resetCountdown(grant)() : 0,
        windowSeconds: WINDOW_SECONDS,
      };
    },
  };
}
