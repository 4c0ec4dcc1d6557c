import type { Command } from 'commander';
import { print } from '../output.ts';
import { bashCompletion } from './bash.ts';
import { readCommandTree } from './command-tree.ts';
import { zshCompletion } from './zsh.ts';

const SCRIPTS = { bash: bashCompletion, zsh: zshCompletion };
export type Shell = keyof typeof SCRIPTS;

/** Prints the script for all commands of the program. */
export async function printCompletion(shell: Shell, program: Command): Promise<void> {
  await print(SCRIPTS[shell](readCommandTree(program)));
}
