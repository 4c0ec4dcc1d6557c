/** RFC 3339 §5.6. The offset is required: without one, the time would depend on the machine's time zone. */
const TIMESTAMP = /^(\d{4})-(\d{2})-(\d{2})T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$/;

/** Parses a time from a record, which any program may have written, to wall time in ms; undefined if it is invalid. */
export function parseTimestamp(text: string): number | undefined {
  const [, year, month, day] = TIMESTAMP.exec(text) ?? [];
  const daysInMonth = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  const timeMs = Number(day) <= daysInMonth ? Date.parse(text) : Number.NaN;
  return Number.isNaN(timeMs) ? undefined : timeMs;
}

export function isWholeHour(timeMs: number): boolean {
  return timeMs % 3_600_000 === 0;
}
