import { STATUS } from '../../api/admin/responses.ts';
import { MAX_LISTED_CHANGES } from '../../config/config-changes.ts';
import type { AnnouncedInstance } from '../../store/announced-instances.ts';
import { documentsOf, isoTime } from '../frame/document-of.ts';
import type { LastReload } from '../reload/reloader.ts';
import type { AdminDependencies, GatewayStatus, Handlers } from './dependencies.ts';
import { unlessUnavailable } from './documents.ts';
import { maintenanceMembers } from './maintenance.ts';
import { statusProblems } from './status-problems.ts';

const withoutProblems = documentsOf(STATUS.omit({ problems: true }));

export function statusHandlers({
  status,
  announced,
  clock,
}: Pick<AdminDependencies, 'status' | 'announced' | 'clock'>) {
  return {
    async 'GET /status'() {
      const members = statusMembers(status(), await unlessUnavailable(announced));
      return { ...members, problems: statusProblems(withoutProblems(members), clock.nowMs()) };
    },
  } satisfies Partial<Handlers>;
}

function statusMembers(
  { startedAtMs, config, store, maintenance, workers, ...status }: GatewayStatus,
  fleet: readonly AnnouncedInstance[] | undefined,
) {
  const { loadedAtMs, lastReload } = config;
  return {
    ...status,
    startedAt: isoTime(startedAtMs),
    uptimeSeconds: Math.floor(status.uptimeSeconds),
    config: { ...config, loadedAt: isoTime(loadedAtMs), lastReload: lastReload && reloadMembers(lastReload) },
    store: { reached: true, wiped: false, empty: false, evicted: false, ...store },
    maintenance: maintenanceMembers(maintenance),
    invalidation: { connected: store.invalidation !== 'disconnected' },
    fleet: fleet?.map(({ instance, announcedAtMs, state }) => ({
      ...state,
      id: instance,
      announcedAt: isoTime(announcedAtMs),
      startedAt: isoTime(state?.startedAtMs),
    })),
    workers: workers.map(({ startedAtMs, ...worker }) => ({ ...worker, startedAt: isoTime(startedAtMs) })),
  };
}

function reloadMembers({ atMs, result, changes, problems }: LastReload) {
  return {
    at: isoTime(atMs),
    result,
    changes: changes.slice(0, MAX_LISTED_CHANGES).map(({ text }) => text),
    error: problems.length > 0 ? problems.join('\n') : null,
  };
}
