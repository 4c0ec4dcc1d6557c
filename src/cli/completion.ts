import type { Command } from '@commander-js/extra-typings';
import { type CommandNode, flatten, type OptionNode, readCommandTree, type ValueNode } from './command-tree.ts';
import { print } from './output.ts';

/** Prints the completion script for all commands of the program. */
export async function printCompletion(program: Command): Promise<void> {
  await print(completionScript(readCommandTree(program)));
}

/**
 * Returns a script for `source`, for zsh, and for bash 3.2 (the version of macOS) and later. From the words before the
 * cursor, it determines the command (`$at`), and whether the last word is an option that needs a value (`$awaited`).
 */
function completionScript(root: CommandNode): string {
  const [program = ''] = root.path;
  const nodes = flatten(root);
  const commands = nodes.slice(1).map(({ path }): Arm => [path.join(' '), 'at="$at $word"']);
  const awaited = nodes.flatMap((node) => node.options.flatMap((option) => awaitedBy(node, option)));
  const words = nodes.map((node): Arm => [node.path.join(' '), completeWord(node)]);
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

_${program}_files() {
  local IFS=$'\\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen -f -- "$cur"))
}

complete -F _${program} ${program}
`;

  function completeWord({ commands: below, options, argument }: CommandNode): string {
    const flags = options.flatMap((option) => option.flags).join(' ');
    const names = below.map(({ path }) => path.at(-1)).join(' ');
    const rest = names === '' ? completeValue(argument) : `_${program}_words '${names}'`;
    const otherwise = rest === undefined ? '' : ` else ${rest};`;
    return `if [[ $cur == -* ]]; then _${program}_words '${flags}';${otherwise} fi`;
  }

  /** Undefined for values that cannot be completed. */
  function completeValue(value: ValueNode | undefined): string | undefined {
    if (value?.kind === 'file') return `_${program}_files`;
    return value?.kind === 'choice' ? `_${program}_words '${value.choices.join(' ')}'` : undefined;
  }
}

type Arm = readonly [pattern: string, body: string];

function awaitedBy({ path }: CommandNode, { flags, value }: OptionNode): Arm[] {
  if (value === undefined) return [];
  const kind = value.kind === 'choice' ? value.choices.join(' ') : value.kind;
  return flags.map((flag) => [[...path, flag].join(' '), `awaited='${kind}'`]);
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
