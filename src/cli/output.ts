/** Results go to standard output, what is said about them to standard error, so that results can be piped. */
import { printableJson } from '../admin-client/printable.ts';
import type { JsonOption } from './admin-options.ts';
import { BrokenPipeError } from './exit-status.ts';
import { type Column, formatDocument, formatTable } from './table.ts';

/** Resolves when it is written. Rejects with BrokenPipeError when its reader is gone, with Error when the disk is full. */
export function print(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'EPIPE'
          ? new BrokenPipeError()
          : new Error(`standard output cannot be written: ${error.message}`),
      );
    // The event comes besides the callback's argument; without a listener it would end the process with a stack trace.
    process.stdout.once('error', fail);
    process.stdout.write(text, (error) => {
      if (error) return fail(error);
      process.stdout.off('error', fail);
      resolve();
    });
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
