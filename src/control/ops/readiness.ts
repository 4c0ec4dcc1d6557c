import type { StoreStatus } from '../../store/store.ts';

interface ReadinessFacts {
  readonly draining: boolean;
  readonly store: Pick<StoreStatus, 'reached' | 'up' | 'wiped' | 'empty' | 'evicted' | 'refusing'>;
  /** Whether each backend has an upstream to which requests can be sent. */
  readonly backendsUp: boolean;
}

export interface Readiness {
  readonly status: 'ready' | 'degraded' | 'not_ready';
  /** Empty when ready. */
  readonly reasons: readonly string[];
}

/**
 * Returns whether this instance should get traffic. Losing backends, or a store that was reached before, makes it
 * degraded, not unready. Every instance would lose them at the same time, and taking all instances out of rotation
 * would turn a brief failure into an outage.
 */
export function assessReadiness({ draining, store, backendsUp }: ReadinessFacts): Readiness {
  const blocking = namesOfTrue({ store_never_reached: store.reached === false, draining });
  if (blocking.length > 0) return { status: 'not_ready', reasons: blocking };
  const reasons = namesOfTrue({
    store_unreachable: !store.up,
    store_wiped: store.wiped,
    store_empty: store.empty,
    store_evicted: store.evicted,
    store_refusing: store.refusing,
    upstream_down: !backendsUp,
  });
  return { status: reasons.length === 0 ? 'ready' : 'degraded', reasons };
}

function namesOfTrue(facts: Readonly<Record<string, boolean | undefined>>): string[] {
  return Object.keys(facts).filter((name) => facts[name]);
}
