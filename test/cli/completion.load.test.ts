import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { CUSTOMER_DOCUMENT, MAIN, run, startServer, temporaryFile, tollgateHere } from './support.ts';

async function scriptFor(shell: string): Promise<string> {
  const { status, stdout, stderr } = await tollgateHere('completion', shell);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return temporaryFile(`completion.${shell}`, stdout);
}

const hasShell = (shell: string) => spawnSync(shell, ['--version']).status === 0;

it('knows bash and zsh only', async () => {
  const { status, stderr } = await tollgateHere('completion', 'fish');
  expect(status).toBe(2);
  expect(stderr).toContain('bash, zsh');
});

describe.skipIf(!hasShell('bash'))('bash', () => {
  /** What bash offers for the last of the words, as it would split them. */
  async function offers(words: readonly string[], define = ''): Promise<string[]> {
    const program = `${define}
      source <(cat "$1"); shift
      complete -p tollgate > /dev/null || exit 1
      COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tollgate; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { status, stdout, stderr } = await run('bash', [
      '--norc',
      '-c',
      program,
      'bash',
      await scriptFor('bash'),
      ...words,
    ]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    return stdout.split('\n').filter((word) => word !== '');
  }

  it.each([
    ['commands', ['tollgate', ''], ['start', 'customers', 'keys', 'completion']],
    ['commands that begin so', ['tollgate', 'cu'], ['customers']],
    ['commands below a command', ['tollgate', 'keys', ''], ['create', 'expiring', 'import', 'rotate', 'unused']],
    [
      'options of a command',
      ['tollgate', 'keys', 'rotate', 'key_1', '--'],
      ['--grace-seconds', '--json', '--admin-url'],
    ],
    [
      'options after the value of another',
      ['tollgate', 'keys', 'create', 'acme', '--name', 'list', '--exp'],
      ['--expires-at'],
    ],
    [
      'options after a value written with =',
      ['tollgate', 'keys', 'rotate', '--grace-seconds', '=', '5', '--js'],
      ['--json'],
    ],
    ['the choices of an argument', ['tollgate', 'completion', ''], ['bash', 'zsh']],
  ])('offers %s', async (_what, words, expected) => {
    expect(await offers(words)).toEqual(expect.arrayContaining(expected));
  });

  it('offers the customers and plans of the gateway, unless the line names another one', async () => {
    const documents: Readonly<Record<string, object>> = {
      '/admin/v1/config': { plans: { starter: { requests_per_hour: 1 }, enterprise: { requests_per_hour: 'custom' } } },
      '/admin/v1/customers?limit=100&id_prefix=ac': { items: [CUSTOMER_DOCUMENT], next_cursor: null },
    };
    const url = await startServer((req, res) => {
      res.setHeader('content-type', 'application/json').end(JSON.stringify(documents[req.url ?? '']));
    });
    const define = `tollgate() { TOLLGATE_ADMIN_TOKEN=t '${process.execPath}' '${MAIN}' "$@" --admin-url ${url}; }`;
    expect(await offers(['tollgate', 'customers', 'show', 'ac'], define)).toEqual(['acme']);
    expect(await offers(['tollgate', 'audit', '--customer', 'ac'], define)).toEqual(['acme']);
    expect(await offers(['tollgate', 'customers', 'list', '--plan', 'e'], define)).toEqual(['enterprise']);
    expect(await offers(['tollgate', 'keys', 'list', '--admin-url', 'x', 'ac'], define)).toEqual([]);
  });

  it.each([
    ['a value that only its author knows', ['tollgate', 'keys', 'create', 'acme', '--name', '']],
    ['an id', ['tollgate', 'customers', 'show', '']],
    ['options of another command', ['tollgate', 'customers', 'list', '--grace']],
    ['an id that is named like a command', ['tollgate', 'keys', 'show', 'list', '']],
  ])('offers nothing for %s', async (_what, words) => {
    expect(await offers(words)).toEqual([]);
  });

  it.each([
    ['an option', ['tollgate', 'keys', 'import', '--file']],
    ['an option written with =', ['tollgate', 'start', '--config', '=']],
    ['an argument', ['tollgate', 'check-config']],
  ])('offers files where %s takes one', async (_what, words) => {
    const file = await temporaryFile('a name with spaces.csv', '');
    expect(await offers([...words, file.slice(0, -5)])).toEqual([file]);
  });
});

describe.skipIf(!hasShell('zsh'))('zsh', () => {
  /** What zsh offers after the words. It discards what does not begin like the word at the cursor. */
  async function offers(words: readonly string[]): Promise<string[]> {
    const program = `autoload -Uz compinit && compinit -D -u && source "$1" && shift
      [[ $_comps[tollgate] == '_bash_complete -F _tollgate' ]] || exit 1
      words=("$@") COMP_WORDS=("$@") CURRENT=$# COMP_CWORD=$(($# - 1)) PREFIX=$words[-1]
      compgen -F _tollgate -- "$PREFIX"`;
    const { stdout, stderr } = await run('zsh', ['-f', '-c', program, 'zsh', await scriptFor('zsh'), ...words]);
    expect(stderr).toBe('');
    return stdout.split('\n').filter((word) => word !== '');
  }

  it.each([
    ['commands', ['tollgate', 'keys', ''], ['create', 'import', 'rotate', 'unused']],
    ['options', ['tollgate', 'keys', 'create', 'acme', '--name', 'list', '--'], ['--expires-at', '--json']],
    ['the choices of an option', ['tollgate', 'start', '--log-format', ''], ['auto', 'json', 'pretty']],
  ])('offers %s', async (_what, words, expected) => {
    expect(await offers(words)).toEqual(expect.arrayContaining(expected));
  });

  it('offers files where an argument takes one', async () => {
    const file = await temporaryFile('a name with spaces.yaml', '');
    expect(await offers(['tollgate', 'check-config', file.slice(0, -6)])).toEqual([file]);
  });

  it('offers nothing for an id', async () => {
    expect(await offers(['tollgate', 'customers', 'show', ''])).toEqual([]);
  });
});
