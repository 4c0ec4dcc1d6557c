import { createInterface } from 'node:readline';
import { UsageError } from './exit-status.ts';

/**
 * Asks for confirmation on standard error, unless `yes` is set. Call it before any change.
 * @throws UsageError if there is no terminal to ask on, Error unless the user types yes.
 */
export async function confirm(
  { yes }: { readonly yes?: true | undefined },
  question: () => string | Promise<string>,
): Promise<void> {
  if (yes) return;
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    throw new UsageError('this cannot be undone, and there is no terminal to ask for confirmation: add --yes');
  }
  process.stderr.write(`${await question()} This cannot be undone. [y/N] `);
  if (!/^\s*y(es)?\s*$/i.test((await readLine()) ?? '')) throw new Error('not confirmed; nothing was changed');
}

/** Leaves line editing to the terminal, so that Ctrl-C ends the program as usual. */
async function readLine(): Promise<string | undefined> {
  for await (const line of createInterface({ input: process.stdin, terminal: false })) return line;
  return undefined;
}
