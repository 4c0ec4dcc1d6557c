/**
 * The days and months of customers: when they begin. A period consists of whole hours of UTC, from its first hour up to,
 * and not including, the first hour of the next one. redis/window/period.lua is the same inside Redis.
 */
import { HOUR_MS } from './usage-history.ts';

export type Per = 'day' | 'month';

/** When periods begin: a month on this day at this hour, on its last day if it is shorter; a day at this hour. */
export interface Anchor {
  /** Of the month, from 1. */
  readonly day: number;
  /** From 0. */
  readonly hour: number;
}

/** Hours since 1970. */
export interface Period {
  readonly startHour: number;
  /** The first hour of the next period. */
  readonly endHour: number;
}

/** Of customers without an anchor of their own. */
export const CALENDAR: Anchor = { day: 1, hour: 0 };

/** Returns the anchor that a time on a whole hour stands for. */
export function anchorAt(timeMs: number): Anchor {
  const time = new Date(timeMs);
  return { day: time.getUTCDate(), hour: time.getUTCHours() };
}

/**
 * Returns the period at a time. Each month is computed from the anchor, not from the month before: after a February, an
 * anchor on the 31st is on the 31st again.
 */
export function periodAt(nowMs: number, per: Per, anchor: Anchor): Period {
  const hour = Math.floor(nowMs / HOUR_MS);
  if (per === 'day') {
    const startHour = hour - ((hour + 24 - anchor.hour) % 24);
    return { startHour, endHour: startHour + 24 };
  }
  const now = new Date(nowMs);
  const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()];
  const thisStart = startOfMonth(year, month, anchor);
  return hour < thisStart
    ? { startHour: startOfMonth(year, month - 1, anchor), endHour: thisStart }
    : { startHour: thisStart, endHour: startOfMonth(year, month + 1, anchor) };
}

/** `month`: from 0; those before and after continue in the neighboring years. */
function startOfMonth(year: number, month: number, { day, hour }: Anchor): number {
  // Day 0 of the next month is the last one of this month.
  return Math.min(Date.UTC(year, month, day, hour), Date.UTC(year, month + 1, 0, hour)) / HOUR_MS;
}
