import { type CommandNode, flatten, type OptionNode, type ValueNode } from './command-tree.ts';

/** Returns a script for `source`, or for a file `_tollgate` in the `fpath`, with one function per command. */
export function zshCompletion(root: CommandNode): string {
  const [program = ''] = root.path;
  return `#compdef ${program}
# Completion of ${program} for zsh. To be loaded with: source <(${program} completion zsh)
${flatten(root).map(completeCommand).join('\n')}
if [[ \${funcstack[1]} == _${program} ]]; then
  _${program} "$@"
else
  compdef _${program} ${program}
fi
`;
}

function completeCommand(node: CommandNode): string {
  const options = node.options.flatMap(optionSpecs);
  if (node.commands.length === 0) {
    const argument = node.argument ? [quote(`1:${valueSpec(node.argument)}`)] : [];
    return `${functionName(node)}() {\n  _arguments ${[...options, ...argument].join(' ')}\n}\n`;
  }
  const names = node.commands.map(({ path, description }) => quote(`${path.at(-1)}:${escapeSpecial(description)}`));
  const calls = node.commands.map((each) => `        ${each.path.at(-1)}) ${functionName(each)} ;;`);
  return `${functionName(node)}() {
  local context state state_descr line
  typeset -A opt_args
  _arguments -C ${options.join(' ')} '1: :->command' '*:: :->rest'
  case $state in
    command)
      local -a commands
      commands=(${names.join(' ')})
      _describe command commands
      ;;
    rest)
      case $line[1] in
${calls.join('\n')}
      esac
      ;;
  esac
}
`;
}

function functionName({ path }: CommandNode): string {
  return `_${path.join('_')}`;
}

function optionSpecs({ flags, description, value }: OptionNode): string[] {
  const exclusive = flags.length > 1 ? `(${flags.join(' ')})` : '';
  const suffix = value ? `:${valueSpec(value)}` : '';
  return flags.map((flag) => quote(`${exclusive}${flag}${value ? '=' : ''}[${escapeSpecial(description)}]${suffix}`));
}

function valueSpec(value: ValueNode): string {
  const name = escapeSpecial(value.name);
  if (value.kind === 'file') return `${name}:_files`;
  return value.kind === 'choice' ? `${name}:(${value.choices.join(' ')})` : `${name}: `;
}

/** Escapes characters that are special in specifications of `_arguments` and `_describe`. */
function escapeSpecial(text: string): string {
  return text.replace(/[\\:[\]]/g, '\\$&');
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
