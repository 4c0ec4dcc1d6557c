/** What is wrong with a member of an input, in words that name members and never values: a value may be a misplaced secret. */
import type { z } from 'zod';

/** What the parts of an input are called. */
export interface Terms {
  readonly whole: string;
  readonly member: string;
}

const PLAIN_NAME = /^[A-Za-z_]{1,24}$/;

/** `issue`: of a parse with `reportInput`. */
export function describeIssue(issue: z.core.$ZodIssue, { whole, member }: Terms): string {
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => `${shown(key)}: unknown ${member}`).join('; ');
  const place = issue.path.length > 0 ? issue.path.join('.') : whole;
  if (issue.code !== 'invalid_type') return `${place}: ${issue.message}`;
  return issue.input === undefined ? `${place}: missing` : `${place}: must be ${withArticle(issue.expected)}`;
}

/** A key can come to stand where the name of a member should. */
function shown(name: string): string {
  return PLAIN_NAME.test(name) ? `"${name}"` : 'a name that is not shown';
}

function withArticle(type: string): string {
  const word = type === 'int' ? 'integer' : type;
  return /^[aeiou]/.test(word) ? `an ${word}` : `a ${word}`;
}
