import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const rows = readFileSync(`${ROOT}docs/faults.md`, 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('|') && !/^\|(?:---| fault )/.test(line));
const shownBy = (row: string) => [...row.matchAll(/`(test\/[\w/.-]+\.test\.ts)`: “([^”]+)”/g)];

/** As it stands in the source: a title, then what is done, or for a template the rest of it. */
function isTitle(source: string, title: string): boolean {
  return ["'", '"', '`'].some((quote) => source.includes(`${quote}${title}${quote},`));
}

it('docs/faults.md names for every fault a test that exists', () => {
  expect(rows.length).toBeGreaterThan(40);
  const missing = rows.flatMap((row) => {
    const tests = shownBy(row);
    if (tests.length === 0) return [`no test: ${row}`];
    return tests
      .filter(([, file = '', title = '']) => !isTitle(readFileSync(ROOT + file, 'utf8'), title))
      .map(([, file, title]) => `${file} has no “${title}”`);
  });
  expect(missing).toEqual([]);
});

it('docs/faults.md has nothing in its last column but tests', () => {
  for (const row of rows) {
    const [, , , , last = ''] = row.split(' | ').flatMap((cell, index) => (index === 0 ? ['', cell] : [cell]));
    expect(last.replace(/ \|$/, '').split(' <br> ')).toHaveLength(shownBy(row).length);
  }
});

it('docs/faults.md names every file of test/faults', () => {
  const files = readdirSync(`${ROOT}test/faults`).filter((name) => name.endsWith('.test.ts'));
  const named = new Set(rows.flatMap(shownBy).map(([, file]) => file));
  expect(files.filter((name) => !named.has(`test/faults/${name}`))).toEqual([]);
});
