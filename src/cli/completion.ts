import { Argument, type Command, type CommandUnknownOpts, type Option } from '@commander-js/extra-typings';
import { adminCommand } from './admin-commands.ts';
import { connect } from './connect.ts';
import { print } from './output.ts';

/** Customers that one completion offers. */
const MOST_IDS = 100;

/** A command, with the names that lead to it: `tollgate keys list`. */
export interface NamedCommand {
  readonly path: string;
  readonly command: CommandUnknownOpts;
}

/** Returns a command and all its subcommands, parents first, as the help shows them. */
export function allCommands(command: CommandUnknownOpts, parents = ''): NamedCommand[] {
  const path = `${parents} ${command.name()}`.trim();
  const below = command.createHelp().visibleCommands(command);
  return [{ path, command }, ...below.flatMap((each) => allCommands(each, path))];
}

export function visibleOptions(command: CommandUnknownOpts): Option[] {
  return command.createHelp().visibleOptions(command);
}

/** Returns all ways to write an option: `['-h', '--help']`. */
export function flagsOf({ short, long }: Option): string[] {
  return [short, long].filter((flag) => flag !== undefined);
}

/** Prints the completion script for all commands of the program. */
export async function printCompletion(program: CommandUnknownOpts): Promise<void> {
  await print(completionScript(program.name(), allCommands(program)));
}

/**
 * Returns a script for `source`, for zsh, and for bash 3.2 (the version of macOS) and later. From the words before the
 * cursor, it determines the command (`$at`), and whether the last word is an option that needs a value (`$awaited`).
 */
function completionScript(program: string, all: readonly NamedCommand[]): string {
  const commands = all.slice(1).map(({ path }): Arm => [path, 'at="$at $word"']);
  const awaited = all.flatMap(awaitedBy);
  const words = all.map(({ path, command }): Arm => [path, completeWord(command)]);
  return `# Completion of ${program} for bash, and for zsh after compinit.
# To be loaded with: source <(${program} completion bash)
[[ -z \${ZSH_VERSION-} ]] || { autoload -U +X bashcompinit && bashcompinit; }

_${program}() {
  local cur=\${COMP_WORDS[COMP_CWORD]} at='${program}' awaited='' word i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    # bash makes a word of its own of the "=" in --option=value.
    [[ $word == '=' ]] && continue
    if [[ -n $awaited ]]; then
      awaited=''
      continue
    fi
    case "$at $word" in
${cases(groupByBody([...commands, ...awaited]))}
    esac
  done
  [[ $cur == '=' ]] && cur=''
  case "$awaited" in
    text) return ;;
    file) _${program}_files; return ;;
    customers | plans) _${program}_ids "$awaited"; return ;;
    ?*) _${program}_words "$awaited"; return ;;
  esac
  case "$at" in
${cases(groupByBody(words), '    ')}
  esac
}

_${program}_words() {
  local IFS=$' \\t\\n'
  COMPREPLY=($(compgen -W "$1" -- "$cur"))
}

# Asks the gateway. Not with --admin-url or --admin-token-file in the line, of which bash splits the values.
_${program}_ids() {
  [[ " \${COMP_WORDS[*]} " == *' --admin-'* ]] && return
  _${program}_words "$("\${COMP_WORDS[0]}" complete-ids "$1" "$cur" 2>/dev/null)"
}

_${program}_files() {
  local IFS=$'\\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen -f -- "$cur"))
}

complete -F _${program} ${program}
`;

  function completeWord(command: CommandUnknownOpts): string {
    const flags = visibleOptions(command).flatMap(flagsOf).join(' ');
    const below = command.createHelp().visibleCommands(command);
    const names = below.map((each) => each.name()).join(' ');
    const rest = names === '' ? completeArgument(command) : `_${program}_words '${names}'`;
    const otherwise = rest === undefined ? '' : ` else ${rest};`;
    return `if [[ $cur == -* ]]; then _${program}_words '${flags}';${otherwise} fi`;
  }

  /** No command takes more than one argument. Undefined for values that cannot be completed. */
  function completeArgument({ registeredArguments: [argument] }: CommandUnknownOpts): string | undefined {
    const value = argument && completionOf(argument.name(), argument);
    if (value === 'file') return `_${program}_files`;
    if (value === 'customers' || value === 'plans') return `_${program}_ids ${value}`;
    return value === undefined || value === 'text' ? undefined : `_${program}_words '${value}'`;
  }
}

const KINDS: Readonly<Record<string, string>> = { file: 'file', customer: 'customers', plan: 'plans' };

/** Returns the words to choose from, or else a kind: `file`, `customers`, `plans` or `text`. */
function completionOf(name: string, { argChoices }: Pick<Argument | Option, 'argChoices'>): string {
  return argChoices?.join(' ') ?? KINDS[name] ?? 'text';
}

/** Adds the hidden command that the script calls: it prints ids that begin with a text. */
export function addCompleteIdsCommand(program: Command): void {
  const command = adminCommand(program, 'complete-ids', 'print ids for the completion of a shell', { hidden: true });
  command
    .addArgument(new Argument('<kind>').choices(['customers', 'plans'] as const))
    .argument('[beginning]', '', '')
    .action(async (kind, beginning, options) => {
      const client = await connect(options);
      if (kind === 'plans') {
        const { plans } = await client.call('GET /admin/v1/config', {});
        return print(`${Object.keys(plans).join('\n')}\n`);
      }
      const query = { limit: String(MOST_IDS), ...(beginning && { id_prefix: beginning }) };
      const { items } = await client.call('GET /admin/v1/customers', { query });
      await print(`${items.map(({ id }) => id).join('\n')}\n`);
    });
}

type Arm = readonly [pattern: string, body: string];

function awaitedBy({ path, command }: NamedCommand): Arm[] {
  return visibleOptions(command).flatMap((option) => {
    const [, name] = /<([^.>]+)/.exec(option.flags) ?? [];
    if (name === undefined) return [];
    return flagsOf(option).map((flag): Arm => [`${path} ${flag}`, `awaited='${completionOf(name, option)}'`]);
  });
}

/** Patterns with the same body share one arm. */
function groupByBody(arms: readonly Arm[]): Arm[] {
  return [...Map.groupBy(arms, ([, body]) => body)].map(([body, group]) => [
    group.map(([pattern]) => pattern).join("' | '"),
    body,
  ]);
}

function cases(arms: readonly Arm[], indent = '      '): string {
  return arms.map(([pattern, body]) => `${indent}'${pattern}') ${body} ;;`).join('\n');
}
