/** Parses times and durations that users type: `2030-01-31`, `2030-01-31T12:00:00Z`, `90d`. */
import { InvalidArgumentError } from '@commander-js/extra-typings';
import { isWholeHour, parseTimestamp } from '../formats/timestamp.ts';

const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };
const DURATION = /^(\d{1,5})([smhd])$/;
const DATE = /^\d{4}-\d{2}-\d{2}$/;

/**
 * Returns the time as ISO 8601 in UTC; undefined for invalid text. A date means midnight UTC at its start. A duration
 * counts from `nowMs`, forwards or backwards.
 */
export function readTime(text: string, nowMs: number, direction: 'future' | 'past'): string | undefined {
  const seconds = readDurationSeconds(text);
  if (seconds === undefined) return readInstant(text);
  return new Date(nowMs + 1000 * (direction === 'future' ? seconds : -seconds)).toISOString();
}

/** Like {@link readTime}, but without durations, whose time would be another one at each reading. */
export function readInstant(text: string): string | undefined {
  const timeMs = readMs(text);
  return timeMs === undefined ? undefined : new Date(timeMs).toISOString();
}

function readMs(text: string): number | undefined {
  return parseTimestamp(DATE.test(text) ? `${text}T00:00:00Z` : text);
}

function readDurationSeconds(text: string): number | undefined {
  const [, count, unit = ''] = DURATION.exec(text) ?? [];
  return count === undefined ? undefined : Number(count) * (UNIT_SECONDS[unit] ?? 0);
}

/** Returns an option parser for times that {@link readTime} accepts. The parser throws InvalidArgumentError. */
export function timeParser(direction: 'future' | 'past'): (text: string) => string {
  return (text) => {
    const time = readTime(text, Date.now(), direction);
    if (time !== undefined) return time;
    throw new InvalidArgumentError(
      `It must be a date (2030-01-31), a time (2030-01-31T12:00:00Z) or a duration (90d, 12h, 30m, 45s).`,
    );
  };
}

/** Parses a day, or a time on a whole hour, with which periods begin. Throws InvalidArgumentError. */
export function anchorParser(text: string): string {
  const time = readAnchor(text);
  if (time !== undefined) return time;
  throw new InvalidArgumentError(
    'It must be a date (2030-01-31) or a time on a whole hour of UTC (2030-01-31T10:00:00Z).',
  );
}

/** Returns the time as ISO 8601 in UTC; undefined for text that no period can begin with. */
export function readAnchor(text: string): string | undefined {
  const timeMs = readMs(text);
  return timeMs !== undefined && isWholeHour(timeMs) ? new Date(timeMs).toISOString() : undefined;
}

/** Returns an option parser for durations up to `maxSeconds`, in seconds. The parser throws InvalidArgumentError. */
export function durationParser(maxSeconds: number): (text: string) => number {
  return (text) => {
    const seconds = text === '0' ? 0 : readDurationSeconds(text);
    if (seconds !== undefined && seconds <= maxSeconds) return seconds;
    throw new InvalidArgumentError(
      `It must be a duration such as 7d, 12h, 30m or 45s, of at most ${maxSeconds / 86_400} days.`,
    );
  };
}

/** What {@link timeParser} reads of the past. */
export const TIME_FORMS = '2026-01-31, 2026-01-31T12:00:00Z or an age, such as 90d';

/** The options of a range in the past. */
export const FROM = ['--from <time>', `start of the range: ${TIME_FORMS}`, timeParser('past')] as const;
export const TO = ['--to <time>', 'end of the range', timeParser('past')] as const;
