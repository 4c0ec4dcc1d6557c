import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { buildProgram } from '../../src/cli/command-line.ts';
import { flatten, readCommandTree } from '../../src/cli/command-tree.ts';

const DOCS = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8');
const LEAVES = flatten(readCommandTree(buildProgram(() => {}))).filter(
  ({ path, commands }) => commands.length === 0 && path.at(-1) !== 'help',
);
/** Said once, for all commands that have them. */
const EXPLAINED_ONCE = ['--help', '--json', '--admin-url', '--admin-token-file'];

const isExplainedHere = (flag: string) => flag !== '-h' && !EXPLAINED_ONCE.includes(flag);

it.each(LEAVES.map(({ path, options }) => [path.slice(1).join(' '), options] as const))(
  'docs/cli.md names %s with its options',
  (command, options) => {
    const places = DOCS.split('\n').filter(
      (line) => line.startsWith('|') && new RegExp(`\`${command}[ \`]`).test(line),
    );
    expect(places).toHaveLength(1);
    for (const flag of options.flatMap(({ flags }) => flags).filter(isExplainedHere)) {
      expect(places[0]).toMatch(new RegExp(`[\\s[]${flag}[\\s\\]]`));
    }
  },
);

it.each(EXPLAINED_ONCE)('docs/cli.md explains %s', (flag) => {
  expect(DOCS).toContain(`\`${flag}\``);
});
