/** Points in time and lengths of time as people type them: `2030-01-31`, `2030-01-31T12:00:00Z`, `90d`. */
import { InvalidArgumentError } from 'commander';
import { parseTimestamp } from '../timestamp.ts';

const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };
const DURATION = /^(\d{1,5})([smhd])$/;
const DATE = /^\d{4}-\d{2}-\d{2}$/;

/**
 * Returns the time as ISO 8601 in UTC; undefined for what is none. A date is its first moment in UTC. A duration is counted
 * from `nowMs`, forwards or backwards.
 */
export function readTime(text: string, nowMs: number, direction: 'ahead' | 'ago'): string | undefined {
  const seconds = readDurationSeconds(text);
  const offsetMs = seconds === undefined ? undefined : 1000 * (direction === 'ahead' ? seconds : -seconds);
  const timeMs =
    offsetMs === undefined ? parseTimestamp(DATE.test(text) ? `${text}T00:00:00Z` : text) : nowMs + offsetMs;
  return timeMs === undefined ? undefined : new Date(timeMs).toISOString();
}

function readDurationSeconds(text: string): number | undefined {
  const [, count, unit = ''] = DURATION.exec(text) ?? [];
  return count === undefined ? undefined : Number(count) * (UNIT_SECONDS[unit] ?? 0);
}

/** Of a time as {@link readTime} takes it. The parser throws InvalidArgumentError. */
export function timeParser(direction: 'ahead' | 'ago'): (text: string) => string {
  return (text) => {
    const time = readTime(text, Date.now(), direction);
    if (time !== undefined) return time;
    throw new InvalidArgumentError(
      `It must be a date (2030-01-31), a time (2030-01-31T12:00:00Z) or a duration (90d, 12h, 30m, 45s).`,
    );
  };
}

/** Of a duration of at most `mostSeconds`, in seconds. The parser throws InvalidArgumentError. */
export function durationParser(mostSeconds: number): (text: string) => number {
  return (text) => {
    const seconds = readDurationSeconds(text);
    if (seconds !== undefined && seconds <= mostSeconds) return seconds;
    throw new InvalidArgumentError(
      `It must be a duration such as 7d, 12h, 30m or 45s, of at most ${mostSeconds / 86_400} days.`,
    );
  };
}
