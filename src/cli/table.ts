/** Formats tables as plain text, aligned by spaces. Cells contain untrusted text, which is made printable. */
import type { CustomerDocument, UsageDocument } from '../api/admin/responses.ts';
import { printable } from '../api/client/printable.ts';

/** A value that is not set leaves its cell empty. */
type Cell = string | number | boolean | null | undefined;

/** A member of the row, or a function of it. Members whose names end in `_at` are times. */
type Column<Row> = MembersWithCells<Row> | ((row: Row) => Cell);
type MembersWithCells<Row> = { [Name in keyof Row]: Row[Name] extends Cell ? Name : never }[keyof Row];

/** What each column shows, by the column's title. */
export type Columns<Row> = Readonly<Record<string, Column<Row>>>;

const GAP = '  ';

/**
 * Formats a title line and a line per row; numbers are right-aligned. Put free text in the last column. Returns nothing if
 * there are no rows.
 */
export function formatTable<Row>(rows: readonly Row[], columns: Columns<Row>): string {
  if (rows.length === 0) return '';
  const titles = Object.keys(columns);
  const cells = rows.map((row) => Object.values(columns).map((column) => cellOf(row, column)));
  const lines = [titles, ...cells.map((line) => line.map(cellText))];
  const widths = titles.map((_, index) => Math.max(...lines.map((line) => widthOf(line[index] ?? ''))));
  const numeric = titles.map((_, index) => cells.some((line) => typeof line[index] === 'number'));
  return lines
    .map((line) => line.map((text, index) => pad(text, widths[index] ?? 0, numeric[index] ?? false)).join(GAP))
    .map((line) => `${line.trimEnd()}\n`)
    .join('');
}

function cellOf<Row>(row: Row, column: Column<Row>): Cell {
  if (typeof column === 'function') return column(row);
  const cell = row[column] as Cell;
  return typeof cell === 'string' && String(column).endsWith('_at') ? shortTime(cell) : cell;
}

/** Formats one member per line, name first. Members that are not set are left out. */
export function formatDocument(document: object): string {
  const members = Object.entries(document).filter(([, value]) => isSet(value));
  const width = Math.max(0, ...members.map(([name]) => widthOf(printable(name))));
  return members.map(([name, value]) => `${pad(printable(name), width, false)}${GAP}${memberText(value)}\n`).join('');
}

/** Removes the milliseconds from an ISO 8601 time. */
export function shortTime(time: string): string {
  return time.replace(/\.\d+Z$/, 'Z');
}

interface LimitForATime {
  readonly limit: number | null;
  readonly limit_until: string | null;
  readonly limit_then: number | null;
}

/** Returns `2000 until 2026-11-29T00:00:00Z, then 1000` for a temporary limit. */
export function limitText({ limit, limit_until: until, limit_then: then }: LimitForATime): string | number | null {
  return until === null ? limit : `${limit} until ${shortTime(until)}, then ${then ?? 'none'}`;
}

interface Limits extends LimitForATime {
  readonly period: CustomerDocument['period'];
  readonly suspended: boolean;
  readonly suspended_until: string | null;
}

/** Returns the members for people: what lasts for a time is one text. */
export function withTimes<Document extends Limits>(document: Document) {
  const { limit_until: _, limit_then: __, suspended, suspended_until: until, period, ...rest } = document;
  const suspension = suspended && until !== null ? `until ${shortTime(until)}` : suspended;
  return { ...rest, period: periodText(period), suspended: suspension, limit: limitText(document) };
}

/** Returns `50000 per month (plan), more is overage`. */
function periodText(period: CustomerDocument['period']): string | null {
  if (period === null) return null;
  const { limit, per, limit_source: source, beyond } = period;
  return `${limit} per ${per} (${source})${beyond === 'allow' ? ', more is overage' : ''}`;
}

/** Returns `1200 of 50000 used, until 2026-12-01T00:00:00Z`. */
export function periodUsageText(period: UsageDocument['period']): string | null {
  if (period === null) return null;
  const { used, limit, ends_at: end, overage } = period;
  return `${used} of ${limit} used${overage > 0 ? `, ${overage} of them overage` : ''}, until ${shortTime(end)}`;
}

function memberText(value: unknown): string {
  if (value !== null && typeof value === 'object') return printable(JSON.stringify(value));
  return printable(String(value));
}

function isSet(value: unknown): boolean {
  return value !== null && value !== undefined && value !== '';
}

function cellText(cell: Cell): string {
  if (cell === true) return 'yes';
  if (cell === false) return 'no';
  return isSet(cell) ? printable(String(cell)) : '';
}

function widthOf(text: string): number {
  return [...text].length;
}

function pad(text: string, width: number, right: boolean): string {
  const space = ' '.repeat(width - widthOf(text));
  return right ? space + text : text + space;
}
