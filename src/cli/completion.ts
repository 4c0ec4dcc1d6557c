import type { Command } from 'commander';
import { bashCompletion } from './completion/bash.ts';
import { readCommandTree } from './completion/command-tree.ts';
import { zshCompletion } from './completion/zsh.ts';
import { print } from './output.ts';

const SCRIPTS = { bash: bashCompletion, zsh: zshCompletion };
export type Shell = keyof typeof SCRIPTS;

/** Prints the script for all commands of the program. */
export async function printCompletion(shell: Shell, program: Command): Promise<void> {
  await print(SCRIPTS[shell](readCommandTree(program)));
}
