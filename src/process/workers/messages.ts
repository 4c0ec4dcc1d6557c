/**
 * The messages between the primary and its workers: structured clones, over Node's IPC channel. Both sides run the same
 * program, so an invalid message is a bug, and the receiver throws.
 */
import { z } from 'zod';
import type { Config } from '../../config/config.ts';
import { restoreClone } from '../../config/freeze.ts';
import type { MetricsSnapshot } from '../../observability/metrics.ts';
import type { RecentRefusal } from '../../observability/recent-refusals.ts';
import type { LeaseState } from '../../quota/leased-quota.ts';
import type { ServingFacts } from '../data-plane.ts';

const config = z.custom<Config>(isObject).transform(restoreClone);
const failures = z.array(z.tuple([z.string(), z.int().positive()]));

const request = z.discriminatedUnion('type', [
  /** Apply this configuration. */
  z.object({ type: z.literal('apply_config'), config }),
  /** Send a `metrics` message before the reply. */
  z.object({ type: z.literal('metrics') }),
  z.object({ type: z.literal('leaseState'), customer: z.string() }),
  z.object({ type: z.literal('refusals'), customer: z.string() }),
]);

const toWorker = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('start'), workerId: z.int(), config }),
  z.object({ kind: z.literal('request'), id: z.int(), request }),
  /** Failed keys that another worker counted, by address block. */
  z.object({ kind: z.literal('failures'), failures }),
  /** From now on, close each connection after its response. */
  z.object({ kind: z.literal('begin_drain') }),
  /** Stop listening, complete the requests in flight, and exit. */
  z.object({ kind: z.literal('finish_drain'), drainMs: z.number() }),
]);

const toPrimary = z.discriminatedUnion('kind', [
  /** The first message: the worker receives messages from now on. */
  z.object({ kind: z.literal('online') }),
  z.object({ kind: z.literal('listening'), url: z.string() }),
  /** The worker cannot start, and exits. */
  z.object({ kind: z.literal('failed'), reason: z.string() }),
  z.object({ kind: z.literal('facts'), facts: z.custom<ServingFacts>(isObject) }),
  z.object({ kind: z.literal('metrics'), snapshot: z.custom<MetricsSnapshot>(Array.isArray) }),
  /** Failed keys counted since the last message of this kind, by address block. */
  z.object({ kind: z.literal('failures'), failures }),
  z.object({ kind: z.literal('reply'), id: z.int(), value: z.unknown() }),
  /** The request failed; the worker's log says why. */
  z.object({ kind: z.literal('request_failed'), id: z.int() }),
]);

export type WorkerRequest = z.output<typeof request>;
export type ToWorker = z.output<typeof toWorker>;
export type ToPrimary = z.output<typeof toPrimary>;

/** The reply to each type of request. */
export interface WorkerReplies {
  readonly apply_config: undefined;
  readonly metrics: undefined;
  readonly leaseState: LeaseState;
  readonly refusals: readonly RecentRefusal[];
}

/** @throws ZodError */
export function readToWorker(message: unknown): ToWorker {
  return toWorker.parse(message);
}

/** @throws ZodError */
export function readToPrimary(message: unknown): ToPrimary {
  return toPrimary.parse(message);
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}
