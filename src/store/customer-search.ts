/** What customers can be searched for. Both stores and the admin API use the same rules. */
import { type CustomerRecord, isSuspendedAt } from './record-fields.ts';

export interface CustomerSearch {
  /** In lower case. Each is a part of the id or of the name, in any case. */
  readonly fragments?: readonly string[];
  readonly suspended?: boolean;
  /** Wall time in ms for `suspended`. Default: when no suspension has ended. */
  readonly atMs?: number;
  /** Names of plans, as in the records. */
  readonly plans?: readonly string[];
}

/** What a search compares of a customer. */
export interface SearchedFields extends Pick<CustomerRecord, 'plan' | 'suspended' | 'suspendedUntilMs'> {
  /** Id and name, each on a line, in lower case. */
  readonly text: string;
}

/** Only this much of a name is searched: other programs may write names of any length. */
const SEARCHED_LENGTH = 200;

/** Returns the parts of a text that people search for, in any order. */
export function fragmentsOf(text: string): readonly string[] {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}

export function searchedFields({ id, name = '', plan, suspended, suspendedUntilMs }: CustomerRecord): SearchedFields {
  const text = `${id}\n${name.slice(0, SEARCHED_LENGTH)}`.toLowerCase();
  return { text, plan, suspended, ...(suspendedUntilMs !== undefined && { suspendedUntilMs }) };
}

/** Found customers are listed by rank, and by id within a rank: people mean names more often than parts of ids. */
export type Rank = 'name' | 'id';

/** Returns a function that returns the rank of a customer that matches. `name`: the name alone has all fragments. */
export function searchMatcher({
  fragments = [],
  suspended,
  atMs = Number.NEGATIVE_INFINITY,
  plans,
}: CustomerSearch): (fields: SearchedFields) => Rank | undefined {
  return (fields) => {
    const { text, plan } = fields;
    if (suspended !== undefined && isSuspendedAt(fields, atMs) !== suspended) return undefined;
    if (plans !== undefined && !plans.includes(plan)) return undefined;
    if (!fragments.every((fragment) => text.includes(fragment))) return undefined;
    const nameAt = text.indexOf('\n');
    return fragments.every((fragment) => text.includes(fragment, nameAt)) ? 'name' : 'id';
  };
}

export function isFound(customer: CustomerRecord, search: CustomerSearch): boolean {
  return searchMatcher(search)(searchedFields(customer)) !== undefined;
}
