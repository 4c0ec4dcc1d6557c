import { Router } from 'express';
import { MAX_LISTED_CHANGES } from '../config/changes.ts';
import type { LastReload } from '../reload/reloader.ts';
import type { StoreStatus } from '../store/store.ts';
import type { UpstreamStatus } from '../upstream/upstream.ts';
import { allowOnly } from './method-not-allowed.ts';

/** What one instance knows of itself. Times: wall time in ms. */
export interface GatewayStatus {
  readonly version: string;
  readonly startedAtMs: number;
  readonly uptimeSeconds: number;
  readonly config: {
    readonly file: string;
    readonly hash: string;
    readonly loadedAtMs: number;
    /** Undefined: the file has not changed since the start. */
    readonly lastReload: LastReload | undefined;
  };
  readonly store: StoreStatus;
  /** That said within the last hour that they run. */
  readonly instances: number;
  readonly upstreams: readonly UpstreamStatus[];
  /** Empty where one process does it all. */
  readonly workers: readonly WorkerStatus[];
}

/** A place for a worker, and the process that has it. Times: wall time in ms. */
export interface WorkerStatus {
  readonly id: number;
  /** Undefined between two of them. */
  readonly pid: number | undefined;
  readonly startedAtMs: number | undefined;
  /** Whether it serves callers, and reaches the store. */
  readonly ready: boolean;
  /** Of what it runs; undefined before it does. */
  readonly configHash: string | undefined;
  /** How often its process had to be replaced. */
  readonly restarts: number;
}

function lastReloadDocument({ atMs, result, changes, problems }: LastReload) {
  return {
    at: new Date(atMs).toISOString(),
    result,
    changes: changes.slice(0, MAX_LISTED_CHANGES).map(({ text }) => text),
    error: problems.length > 0 ? problems.join('\n') : null,
  };
}

function workerDocument({ id, pid, startedAtMs, ready, configHash, restarts }: WorkerStatus) {
  return {
    id,
    pid: pid ?? null,
    started_at: startedAtMs === undefined ? null : new Date(startedAtMs).toISOString(),
    ready,
    config_hash: configHash ?? null,
    restarts,
  };
}

export function statusRoute(status: () => GatewayStatus): Router {
  const router = Router({ caseSensitive: true, strict: true });
  router
    .route('/status')
    .get((_req, res) => {
      const { version, startedAtMs, uptimeSeconds, config, store, instances, upstreams, workers } = status();
      res.json({
        version,
        started_at: new Date(startedAtMs).toISOString(),
        uptime_seconds: Math.floor(uptimeSeconds),
        config: {
          file: config.file,
          hash: config.hash,
          loaded_at: new Date(config.loadedAtMs).toISOString(),
          last_reload: config.lastReload === undefined ? null : lastReloadDocument(config.lastReload),
        },
        store: {
          kind: store.kind,
          up: store.up,
          reached: store.reached,
          wiped: store.wiped,
          empty: store.empty,
          evicted: store.evicted,
          refusing: store.refusing,
          last_error: store.lastError ?? null,
        },
        invalidation: { connected: store.invalidation === 'connected' },
        instances,
        upstreams: upstreams.map(({ url, up, reason, fault }) => ({
          url,
          up,
          reason: reason ?? null,
          fault: fault ?? null,
        })),
        workers: workers.map(workerDocument),
      });
    })
    .all(allowOnly('GET', 'HEAD'));
  return router;
}
