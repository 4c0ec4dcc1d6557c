import type { CustomerRecord } from '../../store/record-fields.ts';
import type { RecordStore } from '../../store/records.ts';

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

/** Returns the number of customers by plan name in their records, of the plans that `isCounted` accepts. */
export async function countByPlan(
  isCounted: (plan: string) => boolean,
  records: CustomerLists,
  signal?: AbortSignal,
): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  for await (const customers of everyCustomer(records, signal)) {
    for (const { plan } of customers) if (isCounted(plan)) counts.set(plan, (counts.get(plan) ?? 0) + 1);
  }
  return counts;
}
