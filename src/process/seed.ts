import type { SeedCustomer } from '../config/config.ts';
import { keyPrefix, sha256Hex } from '../keys/api-key.ts';
import type { RecordStore } from '../store/store.ts';

/** Creates the customers and keys of the quick start that do not exist yet. Existing ones are not changed. */
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
