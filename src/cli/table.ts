/** Tables for people: pure text, aligned by spaces. What they show came from elsewhere and is made printable. */
import { printable } from '../admin-client/printable.ts';

/** What is not set is shown as `-`. */
export type Cell = string | number | boolean | null | undefined;

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => Cell;
}

const GAP = '  ';

/** A title line and a line for each row; numbers are aligned to the right. Free text belongs into the last column. */
export function formatTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  const cells = rows.map((row) => columns.map(({ cell }) => cell(row)));
  const lines = [columns.map(({ title }) => title), ...cells.map((line) => line.map(cellText))];
  const widths = columns.map((_, index) => Math.max(...lines.map((line) => widthOf(line[index] ?? ''))));
  const numeric = columns.map((_, index) => cells.some((line) => typeof line[index] === 'number'));
  return lines
    .map((line) => line.map((text, index) => pad(text, widths[index] ?? 0, numeric[index] ?? false)).join(GAP))
    .map((line) => `${line.trimEnd()}\n`)
    .join('');
}

/** One member a line, its name first. */
export function formatDocument(document: Readonly<Record<string, unknown>>): string {
  const members = Object.entries(document);
  const width = Math.max(0, ...members.map(([name]) => widthOf(printable(name))));
  return members.map(([name, value]) => `${pad(printable(name), width, false)}${GAP}${memberText(value)}\n`).join('');
}

/** ISO 8601 to the second; the milliseconds say nothing to people. */
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
