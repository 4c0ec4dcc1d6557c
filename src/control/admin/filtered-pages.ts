/** Pages of filtered lists: many records are read for few that match. */
import { setImmediate } from 'node:timers/promises';
import type { CheckedRequestOf } from '../../api/admin/routes.ts';
import { type CustomerSearch, fragmentsOf } from '../../store/customer-search.ts';
import type { CustomerRecord } from '../../store/record-fields.ts';
import type { Page } from '../../store/records.ts';
import type { AdminContext } from './dependencies.ts';
import { definedMembers } from './documents.ts';

/** After this long, a page is sent as it is, and its cursor continues. So long lists show what was found so far. */
const MAX_PAGE_MS = 100;

export type ReadPage<Item> = (cursor: string | undefined, limit: number) => Promise<Page<Item>>;

/** Returns the only page of a list with this item, if there is one. */
export function pageOfOne<Item>(item: Item | undefined): Page<Item> {
  return { items: item === undefined ? [] : [item], next: undefined };
}

/**
 * Returns a function that reads on while a page is less than half full, for a bounded time. The first page is sent with
 * the first items, so that a client shows them at once. Other requests are served between two reads.
 */
export function readOn<Item>(read: ReadPage<Item>): ReadPage<Item> {
  return async (cursor, limit) => {
    const endMs = performance.now() + MAX_PAGE_MS;
    const items: Item[] = [];
    let next = cursor;
    do {
      const page = await read(next, limit - items.length);
      items.push(...page.items);
      next = page.next;
      if (next === undefined || items.length > (cursor === undefined ? 0 : limit / 2)) break;
      await setImmediate();
    } while (performance.now() < endMs);
    return { items, next };
  };
}

type CustomerFilter = Partial<Omit<CheckedRequestOf<'GET /admin/v1/customers'>['query'], 'cursor' | 'limit'>>;

/** Returns what to search for; undefined without a filter. */
export function searchOf(
  { plan, suspended, search, idPrefix }: CustomerFilter,
  { planNamesOf, limitClock }: Pick<AdminContext, 'planNamesOf' | 'limitClock'>,
): CustomerSearch | undefined {
  const plans = plan === undefined ? undefined : planNamesOf(plan);
  const atMs = suspended === undefined ? undefined : limitClock.nowMs();
  const text = search ?? idPrefix;
  const fragments = text === undefined ? undefined : fragmentsOf(text);
  const wanted: CustomerSearch = definedMembers({ fragments, suspended, atMs, plans });
  return Object.keys(wanted).length === 0 ? undefined : wanted;
}

export function filteredCustomers(
  filter: CustomerFilter,
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
