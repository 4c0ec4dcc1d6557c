/** The index of customers by the beginning of id and name, by plan, and of those that are suspended. */
import { type CustomerSearch, isFound, searchedTexts } from '../../customer-search.ts';
import type { CustomerRecord } from '../../record-fields.ts';
import type { RecordStore } from '../../store.ts';
import { customerIndexName } from '../protocol/key-names.ts';
import { type IndexedRecords, type IndexParts, SearchIndex, type TermRange } from './search-index.ts';

export function customerIndex({ connection, prefix, read, scan, pushed }: IndexParts<CustomerRecord>) {
  const records: IndexedRecords<CustomerRecord> = {
    connection,
    name: customerIndexName(prefix),
    op: 'list_customers',
    isPushed: () => pushed.connected,
    idOf: ({ id }) => id,
    termsOf: (customer) => [
      ...searchedTexts(customer).map(textTerm),
      planTerm(customer.plan),
      ...(customer.suspended ? [SUSPENDED] : []),
    ],
    read,
    scan,
  };
  const index = new SearchIndex(records);
  pushed.subscribe((change) => {
    if (change.kind !== 'key') index.changed(change.kind === 'customer' ? change.id : undefined);
  });

  const find: RecordStore['findCustomers'] = (search, cursor, limit) => {
    const ranges = rangesOf(search);
    const matches = (customer: CustomerRecord) => isFound(customer, search);
    return index.find({ ranges, matches }, cursor, limit);
  };
  return { index, find };
}

const SUSPENDED = 's';
const textTerm = (text: string) => `t${text}`;
/** Ends with a character that no plan has in its name, so that no plan's term is the beginning of another. */
const planTerm = (plan: string) => `p${plan}\n`;

/** The ranges that probably have the fewest entries. */
function rangesOf({ beginning, suspended, plans }: CustomerSearch): TermRange[] {
  if (beginning !== undefined) return [{ from: textTerm(beginning.toLowerCase()) }];
  if (suspended === true) return [{ from: SUSPENDED }];
  return plans === undefined ? [{ from: textTerm('') }] : plans.map((plan) => ({ from: planTerm(plan) }));
}
