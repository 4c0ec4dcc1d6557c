/** Judges the state of a gateway: what needs an operator now, or will at the next restart, and what to do. */
import type { StatusDocument, StatusProblemDocument } from '../../api/admin/responses.ts';

/** Announcements are repeated every 10 s. An instance that misses three has ended, or has lost the store. */
const MAX_SILENCE_MS = 30_000;

/** A maintenance that takes longer was probably forgotten. */
const LONG_MAINTENANCE_MS = 24 * 3600 * 1000;

/** Returns the problems of a gateway in this state. Empty if it is healthy. `nowMs`: wall time. */
export function statusProblems(status: Omit<StatusDocument, 'problems'>, nowMs: number): StatusProblemDocument[] {
  const { maintenance, store, invalidation, upstreams, workers, config, customers_without_plan: withoutPlan } = status;
  const { last_reload: reload } = config;
  const instances = liveInstances(status);
  const others = instances.filter(({ config_hash: hash }) => hash !== null && hash !== config.hash);
  const isDetached = store.up && !invalidation.connected;
  const problem = (what: string, advice: string, detail: string | null = null) => ({ what, advice, detail });
  const found = [
    !store.up &&
      problem(
        'The store is unreachable: quotas are decided without it.',
        'Known keys work for a while, others get 503. Bring the store back; do not restart gateways meanwhile.',
        store.last_error,
      ),
    store.wiped && problem('The store lost its data.', 'Restore it, or accept it with "tollgate store init".'),
    store.empty &&
      problem(
        'The store has no customers yet.',
        'New installation: create the first customer and key. Otherwise the data was lost: restore it. Until then, keys get 503.',
      ),
    store.evicted &&
      problem(
        'Redis evicted keys: quotas, usage history and perhaps records.',
        'Set maxmemory-policy to noeviction, and restore what is missing.',
      ),
    store.refusing &&
      problem(
        'The store refuses writes.',
        'Is it out of memory or disk space, or without a permission? Quotas are decided without it.',
        store.last_error,
      ),
    isDetached &&
      problem('Changes are not pushed.', 'Changes to keys and customers take effect only after auth.cache_seconds.'),
    ...upstreams.map(({ backend, url, up, reason, fault }) => {
      const why = reason?.replace('_', ' ') ?? 'out of service';
      return (
        !up &&
        problem(`${url} of the backend ${backend} gets no requests (${why}).`, 'Check it and the way to it.', fault)
      );
    }),
    ...workers.map(({ id, ready, config_hash: hash }) => {
      const advice = 'The log lines of the worker say why.';
      if (!ready) return problem(`Worker ${id} is not ready.`, advice);
      return hash !== config.hash && problem(`Worker ${id} runs another configuration.`, advice, hash);
    }),
    others.length > 0 &&
      problem(
        `${others.length} of ${instances.length} instances run another configuration.`,
        'Give all of them the same file. A change is on its way for some seconds.',
        others.map(({ host, pid, config_hash: hash }) => `${host} (pid ${pid}): ${hash}`).join('\n'),
      ),
    nowMs - Date.parse(maintenance.since ?? '') > LONG_MAINTENANCE_MS &&
      problem(
        `The maintenance (${maintenance.mode}) began more than a day ago.`,
        'If the work is done, end it: "tollgate maintenance off".',
        maintenance.routes?.join('\n'),
      ),
    withoutPlan !== null &&
      withoutPlan.customers > 0 &&
      problem(
        `Customers on plans that are not configured: ${withoutPlan.customers}. All their requests get 403.`,
        'Configure the plans, list their names under "formerly" of others, or move the customers.',
        withoutPlan.plans.join('\n'),
      ),
    reload !== null &&
      reload.error !== null &&
      problem(
        `The configuration file was refused (${reload.result}). The former one is still running.`,
        'Correct the file, or a restart will refuse it, too.',
        reload.error,
      ),
  ];
  return found.filter((each) => each !== false);
}

/** Returns the instances that announce themselves now. */
function liveInstances({ fleet }: Pick<StatusDocument, 'fleet'>): NonNullable<StatusDocument['fleet']> {
  const times = (fleet ?? []).map(({ announced_at: at }) => Date.parse(at));
  const sinceMs = Math.max(...times) - MAX_SILENCE_MS;
  return (fleet ?? []).filter(({ announced_at: at }) => Date.parse(at) >= sinceMs);
}
