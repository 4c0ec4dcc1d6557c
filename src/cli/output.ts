/** Results go to standard output, what is said about them to standard error, so that results can be piped. */
import { printableJson } from '../admin-client/printable.ts';
import type { JsonOption } from './admin-options.ts';
import { type Column, formatDocument, formatTable } from './table.ts';

/** Resolves when it is written. Rejects when whoever read it is gone, or the disk is full. */
export function print(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => reject(new Error(`standard output takes no more: ${error.message}`));
    // The event comes besides the callback's argument; without a listener it would end the process with a stack trace.
    process.stdout.once('error', fail);
    process.stdout.write(text, (error) => (error ? fail(error) : resolve()));
  });
}

export function printJson(value: unknown): Promise<void> {
  return print(`${printableJson(value)}\n`);
}

/** A line for people beside the result. */
export function remark(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** The admin API's document, or one member a line for people. */
export function printDocument(document: Readonly<Record<string, unknown>>, { json }: JsonOption): Promise<void> {
  return json ? printJson(document) : print(formatDocument(document));
}

/** All of a list as one page of the admin API would have it, or a table. `what`: what they are, in the plural. */
export async function printList<Row>(
  what: string,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  { json }: JsonOption,
): Promise<void> {
  if (json) return printJson({ items: rows, next_cursor: null });
  if (rows.length === 0) return remark(`There are no ${what}.`);
  await print(formatTable(columns, rows));
}
