/** The filters of the lists of customers. */
import type { CheckedRequestOf } from '../admin-api/routes.ts';
import type { CustomerSearch } from '../store/customer-search.ts';
import type { CustomerRecord } from '../store/record-fields.ts';
import type { AdminContext } from './dependencies.ts';
import { definedMembers } from './documents.ts';
import { type ReadPage, readOn } from './filtered-pages.ts';

type Filter = Partial<Omit<CheckedRequestOf<'GET /admin/v1/customers'>['query'], 'cursor' | 'limit'>>;

/** Returns what to search for; undefined without a filter. */
export function searchOf(
  { plan, suspended, search, idPrefix }: Filter,
  { planNamesOf, limitClock }: Pick<AdminContext, 'planNamesOf' | 'limitClock'>,
): CustomerSearch | undefined {
  const plans = plan === undefined ? undefined : planNamesOf(plan);
  const atMs = suspended === undefined ? undefined : limitClock.nowMs();
  const wanted: CustomerSearch = definedMembers({ beginning: search ?? idPrefix, suspended, atMs, plans });
  return Object.keys(wanted).length === 0 ? undefined : wanted;
}

export function filteredCustomers(
  filter: Filter,
  context: Pick<AdminContext, 'records' | 'planNamesOf' | 'limitClock'>,
): ReadPage<CustomerRecord> {
  const { records } = context;
  const wanted = searchOf(filter, context);
  if (wanted === undefined) return records.listCustomers;
  const { idPrefix = '' } = filter;
  return readOn(async (cursor, limit) => {
    const { items, next } = await records.findCustomers(wanted, cursor, limit);
    return { items: items.filter(({ id }) => id.startsWith(idPrefix)), next };
  });
}
