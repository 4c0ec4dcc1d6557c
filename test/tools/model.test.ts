/** What npm run lab -- model takes for a verdict of SPIN. SPIN itself runs in that command. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parsePanReport } from '../../tools/model/pan-report.ts';
import { MUTANTS } from '../../tools/model/runs.ts';

const FULL = `
(Spin Version 6.5.2 -- 6 December 2019)
	+ Compression

Full statespace search for:
	never claim         	- (none specified)
	assertion violations	+

State-vector 84 byte, depth reached 8353, errors: 0
   184808 states, stored
  1404076 states, matched
unreached in proctype Time
	/tollgate/tools/model/leases.pml:360, state 370, "D_STEP360"
	/tollgate/tools/model/leases.pml:364, state 376, "-end-"
	(2 of 376 states)
`;
const VIOLATED = `pan:1: assertion violated (sum<=(2+lost)) (at depth 24)\n${FULL.replace('errors: 0', 'errors: 1')}`;

describe('the report of a search', () => {
  test('tells states, depth, and transitions that are never taken', () => {
    expect(parsePanReport(FULL)).toEqual({
      states: 184_808,
      depth: 8353,
      violation: undefined,
      truncation: undefined,
      unreached: ['/tollgate/tools/model/leases.pml:360'],
    });
  });

  test.each([
    ['the window', VIOLATED, 'window'],
    ['the history', VIOLATED.replace('sum<=(2+lost)', 'owed==sum'), 'history'],
    ['the history, by a period', VIOLATED.replace('sum<=(2+lost)', 'counted[0]==in_hours[0]'), 'history'],
    ['a period', VIOLATED.replace('sum<=(2+lost)', 'spent[lease[me].period]<=3'), 'period'],
    [
      'another error by its name',
      VIOLATED.replace(/pan:1: .*/, 'pan:1: block in d_step seq (at depth 3)'),
      'block in d_step seq',
    ],
  ])('tells a violation of %s', (_, report, violation) => {
    expect(parsePanReport(report).violation).toBe(violation);
  });

  test.each([
    ['at the maximum depth', `error: max search depth too small\n${FULL}`],
    ['for lack of memory', `pan: reached -DMEMLIM bound\n${FULL}`],
    ['before its result', FULL.slice(0, 100)],
    ['by hashing that may lose states', FULL.replace('Full statespace', 'Bit statespace')],
  ])('is no proof if the search was truncated %s', (_, report) => {
    expect(parsePanReport(report).truncation).toBeDefined();
  });
});

describe('mutants', () => {
  const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
  const inModels = ['window', 'leases', 'outage', 'charges'].flatMap((name) =>
    [...read(`tools/model/${name}.pml`).matchAll(/MUTANT_([A-Z_]+)/g)].map(([, mutant]) => mutant),
  );
  const listed = MUTANTS.map(({ name }) => name);

  test('of the models are all refuted by a run', () => {
    expect(new Set(listed)).toEqual(new Set(inModels));
  });

  test('are explained in docs/dev/model.md, each with its counter-example', () => {
    const explained = [...read('docs/dev/model.md').matchAll(/^\| `([A-Z_]+)` \|/gm)].map(([, mutant]) => mutant);
    expect(explained).toEqual(listed);
  });
});
