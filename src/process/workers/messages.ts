/** The messages between the primary and its workers: structured clones, over Node's IPC channel. */
import type { Config } from '../../config/config.ts';
import type { MetricsSnapshot } from '../../observability/metrics.ts';
import type { DataPlane, DataPlaneStatus } from '../data-plane.ts';

export type ToWorker =
  | { readonly kind: 'start'; readonly workerId: number; readonly config: Config }
  | { readonly kind: 'request'; readonly id: number; readonly request: WorkerRequest }
  /** Failed keys that another worker counted, by address block. */
  | { readonly kind: 'failures'; readonly failures: FailureCounts }
  /** From now on, close each connection after its response. */
  | { readonly kind: 'begin_drain' }
  /** Stop listening, complete the requests in flight, and exit. */
  | { readonly kind: 'finish_drain'; readonly drainMs: number };

export type ToPrimary =
  /** The first message: the worker receives messages from now on. */
  | { readonly kind: 'online' }
  | { readonly kind: 'listening'; readonly url: string }
  /** The worker cannot start, and exits. */
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'status'; readonly status: DataPlaneStatus }
  | { readonly kind: 'metrics'; readonly snapshot: MetricsSnapshot }
  /** Failed keys counted since the last message of this kind, by address block. */
  | { readonly kind: 'failures'; readonly failures: FailureCounts }
  | { readonly kind: 'reply'; readonly id: number; readonly value: unknown }
  /** The request failed; the worker's log says why. */
  | { readonly kind: 'request_failed'; readonly id: number };

export type FailureCounts = readonly (readonly [block: string, failures: number])[];

export type WorkerRequest =
  | { readonly type: 'apply_config'; readonly config: Config }
  /** Send a `metrics` message before the reply. */
  | { readonly type: 'metrics' }
  | { readonly type: 'leaseState'; readonly customer: string }
  | { readonly type: 'refusals'; readonly customer: string | undefined };

/** The reply to each type of request. */
export interface WorkerReplies {
  readonly apply_config: undefined;
  readonly metrics: undefined;
  readonly leaseState: ReturnType<DataPlane['leaseState']>;
  readonly refusals: ReturnType<DataPlane['refusals']>;
}
