/** What customers can be searched for. Both stores and the admin API use the same rules. */
import type { CustomerRecord } from './record-fields.ts';

export interface CustomerSearch {
  /** Beginning of the id, of the name, or of a word of the name, in any case. */
  readonly beginning?: string;
  readonly suspended?: boolean;
  /** Names of plans, as in the records. */
  readonly plans?: readonly string[];
}

/** Only this much of a name is searched: other programs may write names of any length. */
const SEARCHED_LENGTH = 200;

/** Returns the texts of which one must begin with the searched text in lower case. */
export function searchedTexts({ id, name = '' }: CustomerRecord): string[] {
  const text = name.slice(0, SEARCHED_LENGTH).toLowerCase().toWellFormed();
  const words = [...text.matchAll(/(?<=^| )./gs)].map(({ index }) => text.slice(index));
  return [...new Set([id.toLowerCase(), ...words])];
}

export function isFound(customer: CustomerRecord, { beginning, suspended, plans }: CustomerSearch): boolean {
  if (suspended !== undefined && customer.suspended !== suspended) return false;
  if (plans !== undefined && !plans.includes(customer.plan)) return false;
  if (beginning === undefined) return true;
  const wanted = beginning.toLowerCase();
  return searchedTexts(customer).some((text) => text.startsWith(wanted));
}
