/** What in /status needs attention, and what to do. The same checks as `tollgate status`. */
import type { StatusDocument } from '../../admin-api/responses.ts';

export interface StatusProblem {
  readonly what: string;
  readonly advice: string;
  readonly detail?: string | null;
}

/** Announcements are repeated every 10 s. An instance that misses three has ended, or has lost the store. */
const MAX_SILENCE_MS = 30_000;

/** Instances that announce themselves now. */
export function liveInstances({ fleet }: StatusDocument): NonNullable<StatusDocument['fleet']> {
  const times = (fleet ?? []).map(({ announced_at }) => Date.parse(announced_at));
  const sinceMs = Math.max(...times) - MAX_SILENCE_MS;
  return (fleet ?? []).filter(({ announced_at }) => Date.parse(announced_at) >= sinceMs);
}

export function statusProblems(status: StatusDocument): StatusProblem[] {
  const { store, invalidation, upstreams, workers, config } = status;
  const instances = liveInstances(status);
  const others = instances.filter(({ config_hash }) => config_hash !== null && config_hash !== config.hash);
  const { last_reload: reload } = config;
  const problems: (StatusProblem | false)[] = [
    !store.up && {
      what: 'The store is unreachable: quotas are decided without it.',
      advice: 'Known keys work for a while, others get 503. Bring the store back; do not restart gateways meanwhile.',
      detail: store.last_error,
    },
    store.wiped && { what: 'The store lost its data.', advice: 'Restore it, or accept it with "tollgate store init".' },
    store.empty && {
      what: 'The store has no records.',
      advice: 'Unknown keys get 503 until the first customer exists.',
    },
    store.evicted && { what: 'Redis evicted records.', advice: 'Set maxmemory-policy to noeviction and restore them.' },
    store.refusing && {
      what: 'The store refuses writes.',
      advice: 'Is it out of memory or disk space, or without a permission? Quotas are decided without it.',
      detail: store.last_error,
    },
    store.up &&
      !invalidation.connected && {
        what: 'Changes are not pushed.',
        advice: 'Changes to keys and customers take effect only after auth.cache_seconds.',
      },
    ...upstreams.map(
      ({ url, up, reason, fault }) =>
        !up && {
          what: `The backend ${url} gets no requests (${reason?.replace('_', ' ') ?? 'out of service'}).`,
          advice: 'Check it and the way to it.',
          detail: fault,
        },
    ),
    ...workers.map(
      ({ id, ready, config_hash }) =>
        (!ready || config_hash !== config.hash) && {
          what: `Worker ${id} is not ready or runs another configuration.`,
          advice: 'Its log lines say why.',
        },
    ),
    others.length > 0 && {
      what: `${others.length} of ${instances.length} instances run another configuration.`,
      advice: 'Give all of them the same file. A change is on its way for some seconds.',
      detail: others.map(({ host, pid, config_hash }) => `${host} (pid ${pid}): ${config_hash}`).join('\n'),
    },
    reload !== null &&
      reload.error !== null && {
        what: 'The last config file was refused. The former one is still running.',
        advice: 'Correct the file: see Configuration.',
        detail: reload.error.split('\n')[0] ?? null,
      },
  ];
  return problems.filter((problem) => problem !== false);
}
