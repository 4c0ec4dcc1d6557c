/** Describes invalid members of an input. Messages name members, never values: a value may be a misplaced secret. */
import type { z } from 'zod';

/** The terms that messages use for the input and its parts: `the body` and `member`, `the query` and `parameter`. */
export interface Terms {
  readonly whole: string;
  readonly member: string;
}

const PLAIN_NAME = /^[A-Za-z_]{1,24}$/;

/** Returns the message for an issue. `issue`: from a parse with `reportInput`. */
export function describeIssue(issue: z.core.$ZodIssue, { whole, member }: Terms): string {
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => `${shown(key)}: unknown ${member}`).join('; ');
  const place = issue.path.length > 0 ? issue.path.join('.') : whole;
  if (issue.code !== 'invalid_type') return `${place}: ${issue.message}`;
  return issue.input === undefined ? `${place}: missing` : `${place}: must be ${withArticle(issue.expected)}`;
}

/** Shows a name only if it is plain: a client may send an API key by mistake where a member's name belongs. */
function shown(name: string): string {
  return PLAIN_NAME.test(name) ? `"${name}"` : 'a name that is not shown';
}

function withArticle(type: string): string {
  const word = type === 'int' ? 'integer' : type;
  return /^[aeiou]/.test(word) ? `an ${word}` : `a ${word}`;
}
