/**
 * What the primary and its workers tell each other: structured clones, over the channel that Node.js opens to a process
 * it forks. Both are the same program, so a message that is not understood is a bug; the receiver throws.
 */
import { z } from 'zod';
import type { Config } from '../config/config.ts';
import { restoreClone } from '../config/freeze.ts';
import type { ServingFacts } from '../data-plane.ts';
import type { MetricsSnapshot } from '../observability/metrics.ts';
import type { Held } from '../quota/leased-quota.ts';
import type { RecentRefusal } from '../recent-refusals.ts';

const config = z.custom<Config>(isObject).transform(restoreClone);
const failures = z.array(z.tuple([z.string(), z.int().positive()]));

const question = z.discriminatedUnion('about', [
  /** Go by this configuration from now on. */
  z.object({ about: z.literal('follow'), config }),
  /** Send the metrics, and only then the answer. */
  z.object({ about: z.literal('metrics') }),
  z.object({ about: z.literal('held'), customer: z.string() }),
  z.object({ about: z.literal('refusals'), customer: z.string() }),
]);

const toWorker = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('start'), place: z.int(), config }),
  z.object({ kind: z.literal('ask'), id: z.int(), question }),
  /** Failed keys that other workers counted, by address block. */
  z.object({ kind: z.literal('failures'), failures }),
  /** Answers end their connections from now on. */
  z.object({ kind: z.literal('begin_drain') }),
  /** Takes no more, ends what is under way, and ends. */
  z.object({ kind: z.literal('finish'), drainMs: z.number() }),
]);

const toPrimary = z.discriminatedUnion('kind', [
  /** The first message: it hears. */
  z.object({ kind: z.literal('hello') }),
  z.object({ kind: z.literal('listening'), url: z.string() }),
  /** It cannot start, and ends. */
  z.object({ kind: z.literal('failed'), reason: z.string() }),
  z.object({ kind: z.literal('facts'), facts: z.custom<ServingFacts>(isObject) }),
  z.object({ kind: z.literal('metrics'), snapshot: z.custom<MetricsSnapshot>(Array.isArray) }),
  /** Those that were counted here since the last message of this kind. */
  z.object({ kind: z.literal('failures'), failures }),
  z.object({ kind: z.literal('answer'), id: z.int(), value: z.unknown() }),
  /** The question could not be answered; the worker's log says why. */
  z.object({ kind: z.literal('no_answer'), id: z.int() }),
]);

export type Question = z.output<typeof question>;
export type ToWorker = z.output<typeof toWorker>;
export type ToPrimary = z.output<typeof toPrimary>;

/** What each question is answered with. */
export interface Answers {
  readonly follow: undefined;
  readonly metrics: undefined;
  readonly held: Held;
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
