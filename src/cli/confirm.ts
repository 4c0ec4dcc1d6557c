import { createInterface } from 'node:readline';
import type { DestructiveOptions } from './admin-commands.ts';
import { UsageError } from './exit-status.ts';

/**
 * Call it before any request to the gateway.
 * @throws UsageError without `--yes` if there is no terminal to ask for confirmation.
 */
export function requireTerminalOrYes({ yes }: DestructiveOptions): void {
  if (yes || (process.stdin.isTTY && process.stderr.isTTY)) return;
  throw new UsageError('this cannot be undone, and there is no terminal to ask for confirmation: add --yes');
}

/** Asks for confirmation on standard error. @throws Error unless the user types yes. */
export async function confirm(question: string): Promise<void> {
  process.stderr.write(`${question} This cannot be undone. [y/N] `);
  if (!/^\s*y(es)?\s*$/i.test((await readLine()) ?? '')) throw new Error('not confirmed; nothing was changed');
}

/** Leaves line editing to the terminal, so that Ctrl-C ends the program as usual. */
async function readLine(): Promise<string | undefined> {
  for await (const line of createInterface({ input: process.stdin, terminal: false })) return line;
  return undefined;
}
