/** Writes results to standard output and remarks to standard error, so that results can be piped. */
import { printableJson } from '../api/client/printable.ts';
import { BrokenPipeError } from './exit-status.ts';
import { type Columns, formatDocument, formatTable } from './table.ts';

/** Option of a command that prints a document or a table. */
export interface JsonOption {
  readonly json?: true | undefined;
}

/** Resolves once written. Rejects with BrokenPipeError if the reader closed the pipe, with Error if the write fails. */
export function print(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'EPIPE'
          ? new BrokenPipeError()
          : new Error(`standard output cannot be written: ${error.message}`),
      );
    // The stream emits `error` in addition to the callback; without a listener it ends the process with a stack trace.
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

/** Writes a line for people to standard error. */
export function remark(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** Prints the admin API's document as JSON, or for people with one member per line. */
export function printDocument(document: object, { json }: JsonOption): Promise<void> {
  return json ? printJson(document) : print(formatDocument(document));
}

/** Prints the sections that have text, with an empty line between them. */
export function printSections(...sections: readonly string[]): Promise<void> {
  return print(sections.filter((section) => section !== '').join('\n'));
}

/** Prints a whole list as JSON like one page of the admin API, or as a table. `what`: a plural noun for the rows. */
export async function printList<Row>(
  what: string,
  columns: Columns<Row>,
  rows: readonly Row[],
  { json }: JsonOption,
): Promise<void> {
  if (json) return printJson({ items: rows, next_cursor: null });
  if (rows.length === 0) return remark(`There are no ${what}.`);
  await print(formatTable(rows, columns));
}
