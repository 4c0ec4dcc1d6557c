import { describe, expect, it } from 'vitest';
import { load, MINIMAL, problemsOf } from './support.ts';

it('former names lead to the plan that has them, and to the line of its limit', async () => {
  const { formerPlans, limitOrigins } = await load(`${MINIMAL}plans:
  basic: { requests_per_hour: 5, formerly: [starter, trial] }
  pro: { requests_per_hour: 6 }
`);
  expect([...formerPlans]).toEqual([
    ['starter', 'basic'],
    ['trial', 'basic'],
  ]);
  expect(limitOrigins.plans.get('trial')).toBe('gateway.yaml:4');
});

describe('is refused:', () => {
  it.each([
    ['the name of a plan that there is', 'a', 'plans.b.formerly[0]: duplicates an existing plan name'],
    ['the own name', 'b', 'plans.b.formerly[0]: duplicates an existing plan name'],
    ['a name of two plans', 'old', 'plans.b.formerly[0]: is given for plan a already; keep one'],
    ['a word that metrics use', 'none', 'plans.b.formerly[0]: must be 1 to 64 characters'],
  ])('%s', async (_, name, problem) => {
    const problems = await problemsOf(`${MINIMAL}plans:
  a: { requests_per_hour: 1, formerly: [old] }
  b: { requests_per_hour: 1, formerly: [${name}] }
`);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(`gateway.yaml:5: ${problem}`);
  });
});
