import { randomBytes } from 'node:crypto';

/** Version, trace id, parent id and flags of a `traceparent`, and whatever later versions append. */
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-|$)/;
const NO_TRACE = '0'.repeat(32);
const NO_PARENT = '0'.repeat(16);
/** The part of a trace id that decides whether it is sampled: 52 of the last 56 bits, which a number holds exactly. */
const DECISIVE = { start: 18, end: 31, values: 2 ** 52 } as const;

/** A `traceparent` as received. */
export interface TraceContext {
  readonly traceId: string;
  readonly parentId: string;
  readonly isSampled: boolean;
}

/**
 * Returns the trace context of a request; undefined without a valid `traceparent` (W3C Trace Context §3.2). Version `ff`
 * is invalid, version `00` has nothing appended, and neither id is all zeros. Node.js joins repeated headers by commas,
 * which makes them invalid.
 */
export function parseTraceparent(traceparent: string | string[] | undefined): TraceContext | undefined {
  if (typeof traceparent !== 'string') return undefined;
  const [, version, traceId = NO_TRACE, parentId = NO_PARENT, flags = '', appended] =
    TRACEPARENT.exec(traceparent) ?? [];
  if (version === 'ff' || traceId === NO_TRACE || parentId === NO_PARENT) return undefined;
  if (version === '00' && appended === '-') return undefined;
  return { traceId, parentId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/**
 * Returns the randomness of a trace id, from 0 to below 1. A trace is sampled from 1 - ratio on, as in OpenTelemetry's
 * consistent probability sampling: whoever samples by the same rule decides the same about it.
 */
export function randomnessOf(traceId: string): number {
  return Number.parseInt(traceId.slice(DECISIVE.start, DECISIVE.end), 16) / DECISIVE.values;
}

/** Returns a new trace id with this randomness. */
export function newTraceId(randomness: number): string {
  const others = randomBytes(10).toString('hex');
  const decisive = Math.floor(randomness * DECISIVE.values).toString(16);
  return others.slice(0, DECISIVE.start) + decisive.padStart(DECISIVE.end - DECISIVE.start, '0') + others.slice(-1);
}
