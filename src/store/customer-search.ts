/** What customers can be searched for. Both stores and the admin API use the same rules. */
import { type CustomerRecord, isSuspendedAt } from './record-fields.ts';

export interface CustomerSearch {
  /** Beginning of the id, of the name, or of a word of the name, in any case. */
  readonly beginning?: string;
  readonly suspended?: boolean;
  /** Wall time in ms for `suspended`. Default: when no suspension has ended. */
  readonly atMs?: number;
  /** Names of plans, as in the records. */
  readonly plans?: readonly string[];
}

/** What a search compares of a customer. */
export interface SearchedFields extends Pick<CustomerRecord, 'plan' | 'suspended' | 'suspendedUntilMs'> {
  /** Id and name in lower case, with a space before each text that a search can begin with. */
  readonly text: string;
}

/** Only this much of a name is searched: other programs may write names of any length. */
const SEARCHED_LENGTH = 200;

export function searchedFields({ id, name = '', plan, suspended, suspendedUntilMs }: CustomerRecord): SearchedFields {
  const text = ` ${id}\n ${name.slice(0, SEARCHED_LENGTH)}`.toLowerCase();
  return { text, plan, suspended, ...(suspendedUntilMs !== undefined && { suspendedUntilMs }) };
}

/** Returns a function that returns whether a customer matches. */
export function searchMatcher({
  beginning,
  suspended,
  atMs = Number.NEGATIVE_INFINITY,
  plans,
}: CustomerSearch): (fields: SearchedFields) => boolean {
  const wanted = beginning === undefined ? undefined : ` ${beginning.toLowerCase()}`;
  return (fields) =>
    (suspended === undefined || isSuspendedAt(fields, atMs) === suspended) &&
    (plans === undefined || plans.includes(fields.plan)) &&
    (wanted === undefined || fields.text.includes(wanted));
}

export function isFound(customer: CustomerRecord, search: CustomerSearch): boolean {
  return searchMatcher(search)(searchedFields(customer));
}
