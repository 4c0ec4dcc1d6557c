import type { StoreStatus } from '../store/store.ts';

export interface ReadinessFacts {
  readonly configLoaded: boolean;
  readonly draining: boolean;
  readonly store: Pick<StoreStatus, 'reached' | 'up' | 'wiped'>;
}

export type ReadinessReason =
  | 'configuration_not_loaded'
  | 'store_never_reached'
  | 'draining'
  | 'store_unreachable'
  | 'store_wiped';

export interface Readiness {
  readonly status: 'ready' | 'degraded' | 'not_ready';
  /** Empty when ready. */
  readonly reasons: readonly ReadinessReason[];
}

/**
 * Whether traffic may be sent here. A store that was reached once and is lost makes the gateway degraded, not unready:
 * every instance would lose it at the same time, and taking all of them out of rotation would turn a blip into an outage.
 */
export function assessReadiness({ configLoaded, draining, store }: ReadinessFacts): Readiness {
  const reasons: ReadinessReason[] = [];
  if (!configLoaded) reasons.push('configuration_not_loaded');
  if (!store.reached) reasons.push('store_never_reached');
  if (draining) reasons.push('draining');
  if (reasons.length > 0) return { status: 'not_ready', reasons };
  if (!store.up) reasons.push('store_unreachable');
  if (store.wiped) reasons.push('store_wiped');
  return { status: reasons.length === 0 ? 'ready' : 'degraded', reasons };
}
