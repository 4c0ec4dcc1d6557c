/** Rows of a table as a file for spreadsheets. */

/** Returns the rows as CSV, a column for each member. A text that a spreadsheet would run as a formula begins with an apostrophe. */
function csvOf(rows: readonly object[]): string {
  const names = [...new Set(rows.flatMap(Object.keys))];
  const values = rows.map((row) => names.map((name) => (row as Readonly<Record<string, unknown>>)[name]));
  return [names, ...values].map((line) => `${line.map(cell).join(',')}\r\n`).join('');
}

function cell(value: unknown): string {
  const text = typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? '');
  const safe = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Has the browser save the rows. */
export function saveCsv(name: string, rows: readonly object[]): void {
  const link = document.createElement('a');
  // Without the mark, Excel takes UTF-8 for another encoding.
  link.href = URL.createObjectURL(new Blob(['\uFEFF', csvOf(rows)], { type: 'text/csv' }));
  link.download = `${name}.csv`;
  link.click();
  URL.revokeObjectURL(link.href);
}
