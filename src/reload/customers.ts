import type { CustomerRecord } from '../store/record-fields.ts';
import type { RecordStore } from '../store/store.ts';

/** A page takes a few store commands, each short enough not to delay others for long. */
const PAGE_CUSTOMERS = 100;

export type CustomerLists = Pick<RecordStore, 'listCustomers'>;

/** Yields all customers in pages, each customer once. Rejects with StoreUnavailableError, or when `signal` aborts. */
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

/** Returns the number of customers by plan name in their records. Omits plans that no record names. */
export async function countCustomersOn(
  plans: ReadonlySet<string>,
  records: CustomerLists,
): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  if (plans.size === 0) return counts;
  for await (const customers of everyCustomer(records)) {
    for (const { plan } of customers) if (plans.has(plan)) counts.set(plan, (counts.get(plan) ?? 0) + 1);
  }
  return counts;
}
