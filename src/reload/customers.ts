import type { CustomerRecord, RecordStore } from '../store/store.ts';

/** A page is read by a few commands, none of which keeps the store from others for long. */
const PAGE_CUSTOMERS = 100;

export type CustomerLists = Pick<RecordStore, 'listCustomers'>;

/** All customers, page by page, each of them once. Rejects with StoreUnavailableError. */
export async function* everyCustomer(records: CustomerLists, signal?: AbortSignal): AsyncGenerator<CustomerRecord[]> {
  const seen = new Set<string>();
  let cursor: string | undefined;
  do {
    signal?.throwIfAborted();
    const page = await records.listCustomers(cursor, PAGE_CUSTOMERS);
    const fresh = page.items.filter(({ id }) => !seen.has(id));
    for (const { id } of fresh) seen.add(id);
    yield fresh;
    cursor = page.next;
  } while (cursor !== undefined);
}

/** How many customers' records name each of these plans; those that none names are left out. */
export async function countHolders(
  plans: ReadonlySet<string>,
  records: CustomerLists,
): Promise<ReadonlyMap<string, number>> {
  const holders = new Map<string, number>();
  for await (const customers of everyCustomer(records)) {
    for (const { plan } of customers) if (plans.has(plan)) holders.set(plan, (holders.get(plan) ?? 0) + 1);
  }
  return holders;
}
