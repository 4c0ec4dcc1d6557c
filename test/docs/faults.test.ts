import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The headings and the first cells of the tables, in their order, with the texts of links alone. */
const faultsOf = (page: string) =>
  [...page.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').matchAll(/^(## .*)|^\| (?!fault \|)(.*?) \|/gm)].map(
    ([, heading, fault]) => heading ?? fault,
  );

const page = readFileSync(`${ROOT}docs/faults.md`, 'utf8');
const testsPage = readFileSync(`${ROOT}docs/dev/fault-tests.md`, 'utf8');
const rows = testsPage.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| fault '));
const shownBy = (row: string) => [...row.matchAll(/`(test\/[\w/.-]+\.test\.ts)`: “([^”]+)”/g)];

/** As it stands in the source: a title, then what is done, or for a template the rest of it. */
function isTitle(source: string, title: string): boolean {
  return ["'", '"', '`'].some((quote) => source.includes(`${quote}${title}${quote},`));
}

it('docs/dev/fault-tests.md has the faults of docs/faults.md, in the same order', () => {
  expect(faultsOf(page).length).toBeGreaterThan(50);
  expect(faultsOf(testsPage)).toEqual(faultsOf(page));
});

it('docs/dev/fault-tests.md names for every fault a test that exists', () => {
  const missing = rows.flatMap((row) => {
    const tests = shownBy(row);
    if (tests.length === 0) return [`no test: ${row}`];
    return tests
      .filter(([, file = '', title = '']) => !isTitle(readFileSync(ROOT + file, 'utf8'), title))
      .map(([, file, title]) => `${file} has no “${title}”`);
  });
  expect(missing).toEqual([]);
});

it('docs/dev/fault-tests.md has nothing in its last column but tests', () => {
  for (const row of rows) {
    const [, tests = ''] = /^\| .*? \| (.*) \|$/.exec(row) ?? [];
    expect(tests.split(' <br> ')).toHaveLength(shownBy(row).length);
  }
});

it('docs/dev/fault-tests.md names every file of test/faults', () => {
  // Recipes are there for the programs that these tests install.
  const files = readdirSync(`${ROOT}test/faults`).filter((name) => /^(?!recipe-).*\.test\.ts$/.test(name));
  const named = new Set(rows.flatMap(shownBy).map(([, file]) => file));
  expect(files.filter((name) => !named.has(`test/faults/${name}`))).toEqual([]);
});
