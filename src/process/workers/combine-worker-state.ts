/** Combines the state of several workers into the state that one gateway reports. */
import type { RecentRefusal } from '../../observability/recent-refusals.ts';
import type { DataPlane, DataPlaneStatus } from '../data-plane.ts';

type StoreStatus = DataPlaneStatus['store'];
type UpstreamStatus = DataPlaneStatus['upstreams'][number];
type LeaseState = ReturnType<DataPlane['leaseState']>;

/** Returns the worst state of all: if one worker is degraded, some clients notice. `own`: the state of the primary. */
export function combineStores(own: StoreStatus, workers: readonly DataPlaneStatus[]): StoreStatus {
  const stores = workers.map(({ store }) => store);
  const lastError = own.lastError ?? stores.find((store) => store.lastError !== undefined)?.lastError;
  const isPushed = stores.every((store) => store.invalidation === 'connected');
  return {
    kind: own.kind,
    up: own.up && stores.every((store) => store.up),
    reached: own.reached,
    ...(lastError !== undefined && { lastError }),
    invalidation: isPushed && stores.length > 0 ? 'connected' : 'disconnected',
    wiped: own.wiped || stores.some((store) => store.wiped),
    empty: own.empty || stores.some((store) => store.empty),
    evicted: own.evicted || stores.some((store) => store.evicted),
    refusing: own.refusing || stores.some((store) => store.refusing),
  };
}

/** Workers check upstreams independently. An upstream is up if any worker sends requests to it. */
export function combineUpstreams(workers: readonly DataPlaneStatus[]): readonly UpstreamStatus[] {
  const byUrl = new Map<string, UpstreamStatus>();
  for (const upstream of workers.flatMap(({ upstreams }) => upstreams)) {
    if (upstream.up || !byUrl.has(upstream.url)) byUrl.set(upstream.url, upstream);
  }
  return [...byUrl.values()];
}

export function combineLeaseStates(workers: readonly LeaseState[]): LeaseState {
  const refused = workers.flatMap(({ refusedForMs }) => refusedForMs ?? []);
  return {
    leases: workers.flatMap(({ leases }) => leases),
    refusedForMs: refused.length > 0 ? Math.max(...refused) : undefined,
  };
}

/** Returns the most recent refusals first. */
export function combineRefusals(workers: readonly (readonly RecentRefusal[])[]): readonly RecentRefusal[] {
  const byCode = new Map<string, RecentRefusal>();
  for (const refusal of workers.flat()) {
    const key = `${refusal.customer} ${refusal.code}`;
    const other = byCode.get(key);
    byCode.set(key, other === undefined ? refusal : merge(refusal, other));
  }
  return [...byCode.values()].toSorted((a, b) => b.lastAtMs - a.lastAtMs);
}

function merge(a: RecentRefusal, b: RecentRefusal): RecentRefusal {
  const [last, first] = a.lastAtMs >= b.lastAtMs ? [a, b] : [b, a];
  return { ...last, count: a.count + b.count, firstAtMs: Math.min(first.firstAtMs, last.firstAtMs) };
}
