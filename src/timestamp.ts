/** RFC 3339 §5.6: without an offset a time would mean another instant on every machine. */
const TIMESTAMP = /^(\d{4})-(\d{2})-(\d{2})T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$/;

/** Wall time in ms of a time in a record, which any program may have written; undefined for what is none. */
export function parseTimestamp(text: string): number | undefined {
  const [, year, month, day] = TIMESTAMP.exec(text) ?? [];
  const daysInMonth = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  const timeMs = Number(day) <= daysInMonth ? Date.parse(text) : Number.NaN;
  return Number.isNaN(timeMs) ? undefined : timeMs;
}
