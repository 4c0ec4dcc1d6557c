/** Combines the state of several workers into the state that one gateway reports. */
import type { RecentRefusal } from '../../observability/recent-refusals.ts';
import type { DataPlane, DataPlaneStatus } from '../data-plane.ts';

type WorkerLeases = ReturnType<DataPlane['leaseState']>;

/** Returns the worst state of all: if one worker is degraded, some clients notice. `own`: the state of the primary. */
export function combineStores(
  own: DataPlaneStatus['store'],
  workers: readonly DataPlaneStatus[],
): DataPlaneStatus['store'] {
  const stores = [own, ...workers.map(({ store }) => store)];
  const lastError = stores.find((store) => store.lastError !== undefined)?.lastError;
  const isPushed = workers.length > 0 && workers.every(({ store }) => store.invalidation === 'connected');
  return {
    ...own,
    ...(lastError !== undefined && { lastError }),
    up: stores.every(({ up }) => up),
    invalidation: isPushed ? 'connected' : 'disconnected',
    wiped: stores.some(({ wiped }) => wiped),
    empty: stores.some(({ empty }) => empty),
    evicted: stores.some(({ evicted }) => evicted),
    refusing: stores.some(({ refusing }) => refusing),
  };
}

/** Workers check upstreams independently. An upstream is up if any worker sends requests to it. */
export function combineUpstreams(workers: readonly DataPlaneStatus[]): DataPlaneStatus['upstreams'] {
  const combined = new Map<string, DataPlaneStatus['upstreams'][number]>();
  for (const upstream of workers.flatMap(({ upstreams }) => upstreams)) {
    const id = `${upstream.backend} ${upstream.url}`;
    if (upstream.up || !combined.has(id)) combined.set(id, upstream);
  }
  return [...combined.values()];
}

export function combineLeaseStates(workers: readonly WorkerLeases[]): WorkerLeases {
  const refused = workers.flatMap(({ refusedForMs }) => refusedForMs ?? []);
  return {
    leases: workers.flatMap(({ leases }) => leases),
    refusedForMs: refused.length > 0 ? Math.max(...refused) : undefined,
  };
}

/** Returns the most recent refusals first. */
export function combineRefusals(workers: readonly (readonly RecentRefusal[])[]): readonly RecentRefusal[] {
  const combined = new Map<string, RecentRefusal>();
  for (const refusal of workers.flat().toSorted((a, b) => b.lastAtMs - a.lastAtMs)) {
    const id = `${refusal.customer} ${refusal.code}`;
    const { count, firstAtMs, ...latest } = combined.get(id) ?? { ...refusal, count: 0 };
    combined.set(id, { ...latest, count: count + refusal.count, firstAtMs: Math.min(firstAtMs, refusal.firstAtMs) });
  }
  return [...combined.values()];
}
