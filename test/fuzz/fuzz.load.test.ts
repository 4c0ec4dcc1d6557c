import { afterAll, beforeAll, expect, it } from 'vitest';
import { countTried } from '../http/support/tally.ts';
import { createCase } from './cases.ts';
import { callerAddress, fuzz, isAlive, readFindings } from './run.ts';
import { type Subject, startSubject } from './subject.ts';
import { findFault } from './verdict.ts';

/** `npm run lab -- fuzz` looks longer, and with other seeds. */
const CASES = 1500;

let subject: Subject;
beforeAll(async () => {
  subject = await startSubject();
});
afterAll(() => subject.close());

it.each(readFindings())('what was found before does no harm: $name', async ({ tried }) => {
  expect(await findFault(subject, tried, callerAddress(0))).toBeUndefined();
});

it('a seed gives the same cases again', () => {
  expect([0, 1, 2, 3].map((number) => createCase(7, number))).toEqual(
    [0, 1, 2, 3].map((number) => createCase(7, number)),
  );
});

it('mutated bytes cause no crash, hang, 500, unreadable response, or request that the client did not send', async () => {
  const { cases, findings } = await fuzz(subject, 20_261, (tried) => tried >= CASES);
  countTried(cases);
  expect(findings).toEqual([]);
  expect(await isAlive(subject)).toBe(true);
});
