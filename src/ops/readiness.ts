interface ReadinessFacts {
  readonly configLoaded: boolean;
  readonly draining: boolean;
  readonly store: {
    readonly reached: boolean;
    readonly up: boolean;
    readonly wiped: boolean;
    readonly empty: boolean;
    readonly evicted: boolean;
    /** Whether the store refuses the writes of quotas. */
    readonly refusing: boolean;
  };
  /** Whether requests can be sent to any upstream. */
  readonly upstreamUp: boolean;
}

type ReadinessReason =
  | 'configuration_not_loaded'
  | 'store_never_reached'
  | 'draining'
  | 'store_unreachable'
  | 'store_wiped'
  | 'store_empty'
  | 'store_evicted'
  | 'store_refusing'
  | 'upstream_down';

export interface Readiness {
  readonly status: 'ready' | 'degraded' | 'not_ready';
  /** Empty when ready. */
  readonly reasons: readonly ReadinessReason[];
}

/**
 * Returns whether this instance should get traffic. Losing all upstreams, or a store that was reached before, makes it
 * degraded, not unready. Every instance would lose them at the same time, and taking all instances out of rotation
 * would turn a brief failure into an outage.
 */
export function assessReadiness({ configLoaded, draining, store, upstreamUp }: ReadinessFacts): Readiness {
  const reasons: ReadinessReason[] = [];
  if (!configLoaded) reasons.push('configuration_not_loaded');
  if (!store.reached) reasons.push('store_never_reached');
  if (draining) reasons.push('draining');
  if (reasons.length > 0) return { status: 'not_ready', reasons };
  if (!store.up) reasons.push('store_unreachable');
  if (store.wiped) reasons.push('store_wiped');
  if (store.empty) reasons.push('store_empty');
  if (store.evicted) reasons.push('store_evicted');
  if (store.refusing) reasons.push('store_refusing');
  if (!upstreamUp) reasons.push('upstream_down');
  return { status: reasons.length === 0 ? 'ready' : 'degraded', reasons };
}
