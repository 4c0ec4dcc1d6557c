/** Formats tables as plain text, aligned by spaces. Cells contain untrusted text, which is made printable. */
import { printable } from '../admin-client/printable.ts';

/** A value that is not set is shown as `-`. */
type Cell = string | number | boolean | null | undefined;

/** The cell of each column, by the column's title. */
export type Columns<Row> = Readonly<Record<string, (row: Row) => Cell>>;

const GAP = '  ';

/** Formats a title line and a line per row; numbers are right-aligned. Put free text in the last column. */
export function formatTable<Row>(rows: readonly Row[], columns: Columns<Row>): string {
  const titles = Object.keys(columns);
  const cells = rows.map((row) => Object.values(columns).map((cell) => cell(row)));
  const lines = [titles, ...cells.map((line) => line.map(cellText))];
  const widths = titles.map((_, index) => Math.max(...lines.map((line) => widthOf(line[index] ?? ''))));
  const numeric = titles.map((_, index) => cells.some((line) => typeof line[index] === 'number'));
  return lines
    .map((line) => line.map((text, index) => pad(text, widths[index] ?? 0, numeric[index] ?? false)).join(GAP))
    .map((line) => `${line.trimEnd()}\n`)
    .join('');
}

/** Returns the table, or nothing if it has no rows. */
export function tableUnlessEmpty<Row>(rows: readonly Row[], columns: Columns<Row>): string[] {
  return rows.length > 0 ? [formatTable(rows, columns)] : [];
}

/** Formats one member per line, name first. */
export function formatDocument(document: Readonly<Record<string, unknown>>): string {
  const members = Object.entries(document);
  const width = Math.max(0, ...members.map(([name]) => widthOf(printable(name))));
  return members.map(([name, value]) => `${pad(printable(name), width, false)}${GAP}${memberText(value)}\n`).join('');
}

/** Removes the milliseconds from an ISO 8601 time. */
export function shortTime(time: string | null): string | null {
  return time === null ? null : time.replace(/\.\d+Z$/, 'Z');
}

function memberText(value: unknown): string {
  if (value !== null && typeof value === 'object') return printable(JSON.stringify(value));
  return value === null || value === '' ? '-' : printable(String(value));
}

function cellText(cell: Cell): string {
  if (cell === true) return 'yes';
  if (cell === false) return 'no';
  return cell === null || cell === undefined || cell === '' ? '-' : printable(String(cell));
}

function widthOf(text: string): number {
  return [...text].length;
}

function pad(text: string, width: number, right: boolean): string {
  const space = ' '.repeat(width - widthOf(text));
  return right ? space + text : text + space;
}
