import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { buildProgram } from '../../src/cli/command-line.ts';
import { allCommands, flagsOf, visibleOptions } from '../../src/cli/completion.ts';

const DOCS = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8');
const LEAVES = allCommands(buildProgram(() => {})).filter(
  ({ path, command }) => command.commands.length === 0 && !path.endsWith(' help'),
);
/** Said once, for all commands that have them. */
const EXPLAINED_ONCE = ['--help', '--json', '--admin-url', '--admin-token-file'];

const isExplainedHere = (flag: string) => flag !== '-h' && !EXPLAINED_ONCE.includes(flag);

it.each(LEAVES.map(({ path, command }) => [path.replace('tollgate ', ''), visibleOptions(command)] as const))(
  'docs/cli.md names %s with its options',
  (command, options) => {
    const places = DOCS.split('\n').filter(
      (line) => line.startsWith('|') && new RegExp(`\`${command}[ \`]`).test(line),
    );
    expect(places).toHaveLength(1);
    for (const flag of options.flatMap(flagsOf).filter(isExplainedHere)) {
      expect(places[0]).toMatch(new RegExp(`[\\s[]${flag}[\\s\\]]`));
    }
  },
);

it.each(EXPLAINED_ONCE)('docs/cli.md explains %s', (flag) => {
  expect(DOCS).toContain(`\`${flag}\``);
});
