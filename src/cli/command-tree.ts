/** The command tree for shell completion, read from the same Commander tree that parses the command line. */
import type { CommandUnknownOpts, Option } from '@commander-js/extra-typings';

export interface CommandNode {
  /** Command names from the program name on: `['tollgate', 'keys', 'list']`. */
  readonly path: readonly string[];
  readonly commands: readonly CommandNode[];
  readonly options: readonly OptionNode[];
  /** No command takes more than one. */
  readonly argument?: ValueNode;
}

export interface OptionNode {
  /** All ways to write it: `['-h', '--help']`. */
  readonly flags: readonly string[];
  readonly value?: ValueNode;
}

export type ValueNode =
  | { readonly kind: 'file' | 'text' }
  | { readonly kind: 'choice'; readonly choices: readonly string[] };

/** Returns a command and all its subcommands, as the help shows them. */
export function readCommandTree(command: CommandUnknownOpts, parents: readonly string[] = []): CommandNode {
  const path = [...parents, command.name()];
  const help = command.createHelp();
  const [argument] = command.registeredArguments;
  return {
    path,
    commands: help.visibleCommands(command).map((each) => readCommandTree(each, path)),
    options: help.visibleOptions(command).map(readOption),
    ...(argument && { argument: readValue(argument.name(), argument.argChoices) }),
  };
}

/** Returns a command and all its subcommands, parents first. */
export function flatten(node: CommandNode): CommandNode[] {
  return [node, ...node.commands.flatMap(flatten)];
}

function readOption(option: Option): OptionNode {
  const valueName = /<([^.>]+)/.exec(option.flags)?.[1];
  return {
    flags: [option.short, option.long].filter((flag) => flag !== undefined),
    ...(valueName !== undefined && { value: readValue(valueName, option.argChoices) }),
  };
}

function readValue(name: string, choices: readonly string[] | undefined): ValueNode {
  if (choices) return { kind: 'choice', choices };
  return { kind: name === 'file' ? 'file' : 'text' };
}
