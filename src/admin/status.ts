import { Router } from 'express';
import type { StatusDocument } from '../admin-api/responses.ts';
import { MAX_LISTED_CHANGES } from '../config/changes.ts';
import type { LastReload } from '../reload/reloader.ts';
import type { StoreStatus } from '../store/store.ts';
import type { UpstreamStatus } from '../upstream/upstream.ts';
import { allowOnly } from './method-not-allowed.ts';

/** The status of one gateway. Times: wall time in ms. */
export interface GatewayStatus {
  readonly version: string;
  readonly startedAtMs: number;
  readonly uptimeSeconds: number;
  readonly config: {
    readonly file: string;
    readonly hash: string;
    readonly loadedAtMs: number;
    /** Undefined: no reload was reported since the start. */
    readonly lastReload: LastReload | undefined;
  };
  readonly store: StoreStatus;
  /** Instances that reported to the store within the last hour. */
  readonly instances: number;
  readonly upstreams: readonly UpstreamStatus[];
  /** Empty if a single process does everything. */
  readonly workers: readonly WorkerStatus[];
}

/** A worker slot and the process that fills it. Times: wall time in ms. */
export interface WorkerStatus {
  readonly id: number;
  /** Undefined while a process is being replaced. */
  readonly pid: number | undefined;
  readonly startedAtMs: number | undefined;
  /** Whether the process serves requests and reaches the store. */
  readonly ready: boolean;
  /** Hash of the configuration that it runs; undefined until it runs one. */
  readonly configHash: string | undefined;
  /** How often the process in this slot was replaced. */
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
      const document: StatusDocument = {
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
      };
      res.json(document);
    })
    .all(allowOnly('GET', 'HEAD'));
  return router;
}
