import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { hasPlaceFor, placeResults, renderFindings } from '../../bench/report.ts';

describe('results are written between their markers', () => {
  const before = 'prose\n<!-- results:peers -->\nold\n<!-- end -->\nmore\n<!-- results:sizes -->\n<!-- end -->\nlast\n';

  it('and nothing else changes', () => {
    expect(placeResults(before, 'peers', 'new')).toBe(
      'prose\n<!-- results:peers -->\n\nnew\n\n<!-- end -->\nmore\n<!-- results:sizes -->\n<!-- end -->\nlast\n',
    );
  });

  it('the same results twice leave the text as it was after the first time', () => {
    const once = placeResults(before, 'sizes', 'new');
    expect(placeResults(once, 'sizes', 'new')).toBe(once);
  });

  it.each(['memory', 'size'])('"%s", for which there is no place, is an error', (name) => {
    expect(() => placeResults(before, name, 'new')).toThrow(`no place for the results of "${name}"`);
  });

  it('each scenario has its place in one of the two pages', () => {
    const pages = ['docs/benchmarks.md', 'docs/dev/benchmarks.md'].map((page) =>
      readFileSync(new URL(`../../${page}`, import.meta.url), 'utf8'),
    );
    const names = pages.flatMap((page) =>
      [...page.matchAll(/^<!-- results:(\w+) -->$/gm)].map(([, name = '']) => name),
    );
    expect(names.length).toBeGreaterThan(10);
    for (const name of names) expect(pages.filter((page) => hasPlaceFor(page, name))).toHaveLength(1);
  });

  it('an opening without an end is an error', () => {
    expect(() => placeResults('<!-- results:idle -->\n', 'idle', 'new')).toThrow('no place');
  });
});

it('findings are a sentence, an aligned table and a list', () => {
  const table = {
    head: ['gateway', 'µs'],
    rows: [
      ['tollgate', '61.0'],
      ['a', '7'],
    ],
  };
  expect(renderFindings({ table, remarks: ['one', 'two'], problems: [] }, 'On a machine.')).toBe(`On a machine.

| gateway  |   µs |
| -------- | ---: |
| tollgate | 61.0 |
| a        |    7 |

- one
- two`);
});
