import type { StatusDocument } from '../admin-api/responses.ts';
import { MAX_LISTED_CHANGES } from '../config/config-changes.ts';
import type { LastReload } from '../reload/reloader.ts';
import type { AnnouncedInstance } from '../store/announced-instances.ts';
import { StoreUnavailableError } from '../store/store.ts';
import type { AdminDependencies } from './dependencies.ts';
import type { GatewayStatus } from './gateway-status.ts';
import type { Handlers } from './routes.ts';
import { statusProblems } from './status-problems.ts';

export function statusHandlers({ status, announced }: Pick<AdminDependencies, 'status' | 'announced'>) {
  return {
    async 'GET /status'() {
      const fleet = await announced().catch((error: unknown) => {
        if (error instanceof StoreUnavailableError) return undefined;
        throw error;
      });
      return statusDocument(status(), fleet);
    },
  } satisfies Partial<Handlers>;
}

function statusDocument(
  { version, uptimeSeconds, instances, notices, customersWithoutPlan: withoutPlan, ...status }: GatewayStatus,
  fleet: readonly AnnouncedInstance[] | undefined,
): StatusDocument {
  const { file, hash, loadedAtMs, lastReload } = status.config;
  const { lastError, invalidation, ...store } = status.store;
  const document = {
    version,
    started_at: isoTime(status.startedAtMs),
    uptime_seconds: Math.floor(uptimeSeconds),
    config: {
      file,
      hash,
      loaded_at: isoTime(loadedAtMs),
      last_reload: lastReload === undefined ? null : lastReloadDocument(lastReload),
    },
    store: { ...store, last_error: lastError ?? null },
    invalidation: { connected: invalidation === 'connected' },
    instances,
    notices: notices ?? null,
    customers_without_plan: withoutPlan === undefined ? null : { ...withoutPlan, plans: [...withoutPlan.plans] },
    fleet:
      fleet?.map(({ instance, announcedAtMs, state }) => ({
        id: instance,
        announced_at: isoTime(announcedAtMs),
        host: state?.host ?? null,
        pid: state?.pid ?? null,
        version: state?.version ?? null,
        started_at: state === undefined ? null : isoTime(state.startedAtMs),
        config_hash: state?.configHash ?? null,
      })) ?? null,
    upstreams: status.upstreams.map(({ reason = null, fault = null, ...upstream }) => ({ ...upstream, reason, fault })),
    workers: status.workers.map(({ id, pid = null, startedAtMs, ready, configHash, restarts }) => ({
      id,
      pid,
      started_at: startedAtMs === undefined ? null : isoTime(startedAtMs),
      ready,
      config_hash: configHash ?? null,
      restarts,
    })),
  };
  return { problems: statusProblems(document), ...document };
}

function lastReloadDocument({ atMs, result, changes, problems }: LastReload) {
  return {
    at: isoTime(atMs),
    result,
    changes: changes.slice(0, MAX_LISTED_CHANGES).map(({ text }) => text),
    error: problems.length > 0 ? problems.join('\n') : null,
  };
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
