import type { SeedCustomer } from './config/config.ts';
import { keyPrefix, sha256Hex } from './keys/api-key.ts';
import type { RecordStore } from './store/store.ts';

/** Writes the customers and keys of the quick start that are not there yet; what exists stays as it is. */
export async function seed(customers: readonly SeedCustomer[], records: RecordStore, createdAt: string): Promise<void> {
  for (const { id, name, plan, requestsPerHour, key } of customers) {
    await records.createCustomer({
      id,
      plan,
      suspended: false,
      ...(name !== undefined && { name }),
      ...(requestsPerHour !== undefined && { requestsPerHour }),
    });
    const prefix = keyPrefix(key);
    await records.createKey(sha256Hex(key), {
      id: `key_${id}`,
      customer: id,
      createdAt,
      ...(prefix !== undefined && { prefix }),
    });
  }
}
