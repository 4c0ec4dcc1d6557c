/** The report: a table of Markdown, for the terminal as well as for the pages of benchmarks. */
import type { Spread } from './rounds.ts';

export interface Table {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** What came out of a scenario. */
export interface Findings {
  readonly table: Table;
  /** How to read it, what was left out. */
  readonly remarks: readonly string[];
  /** What makes the run fail. */
  readonly problems: readonly string[];
}

/** A Markdown table with aligned columns: the first to the left, numbers to the right. */
export function renderTable({ head, rows }: Table): string {
  const widths = head.map((title, i) => Math.max(...[title, ...rows.map((row) => row[i] ?? '')].map((c) => c.length)));
  const pad = (cell: string, i: number) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0));
  const line = (cells: readonly string[]) => `| ${cells.map(pad).join(' | ')} |`;
  const rule = widths.map((width, i) => (i === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`));
  return [line(head), line(rule), ...rows.map(line)].join('\n');
}

/** `1.25 (1.20–1.31)`: the median and, in parentheses, the quartiles. */
export function formatSpread({ median, lower, upper }: Spread, decimals: number): string {
  return `${median.toFixed(decimals)} (${lower.toFixed(decimals)}–${upper.toFixed(decimals)})`;
}

export function renderFindings({ table, remarks }: Findings, environment: string): string {
  const list = remarks.map((remark) => `- ${remark}`).join('\n');
  return [environment, renderTable(table), list].filter((part) => part !== '').join('\n\n');
}

const openingOf = (name: string) => `<!-- results:${name} -->\n`;

export const hasPlaceFor = (text: string, name: string): boolean => text.includes(openingOf(name));

/**
 * Puts results between `<!-- results:NAME -->` and the next `<!-- end -->`; all else stays as it is.
 * @throws Error when the text has no place for them.
 */
export function placeResults(text: string, name: string, results: string): string {
  const opening = openingOf(name);
  const start = text.indexOf(opening);
  const end = text.indexOf('<!-- end -->', start);
  if (start < 0 || end < 0) throw new Error(`the page has no place for the results of "${name}"`);
  return `${text.slice(0, start + opening.length)}\n${results}\n\n${text.slice(end)}`;
}
