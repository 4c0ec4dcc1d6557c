import { createInterface } from 'node:readline';
import type { EndingOptions } from './admin-options.ts';
import { UsageError } from './exit-status.ts';

/**
 * To be called before anything is asked of the gateway.
 * @throws UsageError when nobody can be asked and `--yes` is not given.
 */
export function requireSomebodyToAsk({ yes }: EndingOptions): void {
  if (yes || (process.stdin.isTTY && process.stderr.isTTY)) return;
  throw new UsageError('this cannot be undone, and there is no terminal to ask at: add --yes');
}

/** Asks at the terminal, on standard error. @throws Error unless the answer is yes. */
export async function confirm(question: string): Promise<void> {
  process.stderr.write(`${question} This cannot be undone. [y/N] `);
  if (!/^\s*y(es)?\s*$/i.test((await readLine()) ?? '')) throw new Error('not confirmed; nothing was changed');
}

/** Left to the terminal's own line editing, so that Ctrl-C ends the program as it always does. */
async function readLine(): Promise<string | undefined> {
  for await (const line of createInterface({ input: process.stdin, terminal: false })) return line;
  return undefined;
}
