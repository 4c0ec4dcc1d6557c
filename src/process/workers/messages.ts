/** The messages between the primary and its workers: structured clones, over Node's IPC channel. */
import type { Config } from '../../config/config.ts';
import type { MetricsSnapshot } from '../../observability/metrics.ts';
import type { ClientAddresses, DataPlane, DataPlaneStatus } from '../data-plane.ts';

/** What the primary calls in a worker that has started. */
export interface WorkerMethods extends Pick<DataPlane, 'leaseState' | 'refusals' | 'learnFailures' | 'beginDrain'> {
  applyConfig(config: Config): Promise<void>;
  /** Sends a `metrics` message before it resolves. */
  reportMetrics(): Promise<void>;
  /** Stops listening, completes the requests in flight, and exits. */
  finishDrain(drainMs: number): Promise<void>;
}

export interface WorkerCall<Method extends keyof WorkerMethods = keyof WorkerMethods> {
  readonly kind: 'call';
  readonly id: number;
  readonly method: Method;
  readonly args: Parameters<WorkerMethods[Method]>;
}

/** `start` is the first message. Calls wait for the end of the start. */
export type ToWorker = WorkerCall | { readonly kind: 'start'; readonly workerId: number; readonly config: Config };

/** What a worker reports on its own. */
export type Report =
  | { readonly kind: 'listening'; readonly addresses: ClientAddresses }
  /** The worker cannot start, and exits. */
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'status'; readonly status: DataPlaneStatus }
  | { readonly kind: 'metrics'; readonly snapshot: MetricsSnapshot }
  /** Failed keys counted since the last message of this kind, by address block. */
  | { readonly kind: 'failures'; readonly failures: FailureCounts };

/** In a reply, `result` is undefined if the call failed; the worker's log says why. */
export type ToPrimary =
  | Report
  | { readonly kind: 'reply'; readonly id: number; readonly result: CallResult | undefined };

export interface CallResult {
  readonly value: unknown;
}

export type FailureCounts = Parameters<DataPlane['learnFailures']>[0];
