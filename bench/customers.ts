/** Customers and their keys, written into Redis for every gateway in its own form. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { createApiKey, sha256Hex } from '../src/formats/api-key.ts';

export interface Customer {
  readonly id: string;
  readonly key: string;
  readonly requestsPerHour: number;
}

/** More than the benchmark can use up. */
const AMPLE_REQUESTS_PER_HOUR = 1_000_000_000;
const CUSTOMERS_A_PIPELINE = 5_000;

/** A customer with a key of its own. */
export function createCustomer(id: string, requestsPerHour = AMPLE_REQUESTS_PER_HOUR): Customer {
  return { id, key: createApiKey(), requestsPerHour };
}

export function createCustomers(count: number): Customer[] {
  return Array.from({ length: count }, (_, i) => createCustomer(`bench-${i}`));
}

/** Writes Tollgate's records as docs/redis.md describes them, and the peers' `k:<key>`. */
export async function writeCustomers(redis: Redis, customers: readonly Customer[]): Promise<void> {
  for (let start = 0; start < customers.length; start += CUSTOMERS_A_PIPELINE) {
    const pipeline = redis.pipeline();
    for (const { id, key, requestsPerHour } of customers.slice(start, start + CUSTOMERS_A_PIPELINE)) {
      pipeline.hset(`tollgate:customer:{${id}}`, { plan: 'enterprise', requests_per_hour: requestsPerHour });
      pipeline.hset(`tollgate:key:${sha256Hex(key)}`, { id: `key-of-${id}`, customer: id });
      pipeline.hset(`k:${key}`, { cust: id, limit: requestsPerHour });
    }
    const results = await pipeline.exec();
    const [failed] = results?.find(([error]) => error !== null) ?? [];
    if (failed) throw failed;
  }
}

/** A file with one key a line, as wrk.lua reads it. Returns its path. */
export function writeKeyFile(folder: string, customers: readonly Customer[]): string {
  const file = join(folder, 'keys.txt');
  writeFileSync(file, customers.map(({ key }) => `${key}\n`).join(''));
  return file;
}
