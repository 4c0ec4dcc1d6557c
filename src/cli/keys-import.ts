/**
 * Imports keys that were created elsewhere. The whole file is checked first, also against the admin API; only then are
 * keys imported. A key that its customer already has is not changed, so the same file can be imported again.
 */
import { z } from 'zod';
import { keyCreation, NEW_CUSTOMER_ID } from '../api/admin/requests.ts';
import type { AdminClient } from '../api/client/admin-client.ts';
import { AdminRefusal } from '../api/client/failures.ts';
import { sha256Hex } from '../formats/api-key.ts';
import type { LineFault } from './csv.ts';
import { findCustomer, type ImportOptions, type ImportResult, importFile, severalAtOnce } from './import.ts';
import { csvOrJsonLines, fromText, type Line, numberIn, type RawLine } from './import-file.ts';
import { readTime } from './times.ts';

/** One key to import, in the admin API's form, with exactly one of `value` and `sha256`. */
type KeyItem = z.output<ReturnType<typeof keysLayout>['schema']>;

export function importKeys(options: ImportOptions): Promise<void> {
  return importFile(options, {
    ...keysLayout(Date.now()),
    items: 'keys',
    askGateway: missingCustomers,
    importOne,
    tryOne,
    row: ({ customer, name = null }, { keyId = null }) => ({ customer, key_id: keyId, name }),
    columns: { CUSTOMER: 'customer', KEY: 'key_id', NAME: 'name' },
  });
}

/** Returns what can be checked without the gateway. `nowMs`: a key that has expired by then is a fault. */
export function keysLayout(nowMs: number) {
  // The admin API's rules for each member, so that the API does not refuse a checked file halfway.
  const { value, sha256, name, expires_at, scopes, allowed_addresses, requests_per_hour } = keyCreation({
    nowMs: () => nowMs,
  }).shape;
  const time = fromText((text) => readTime(text, nowMs, 'future') ?? text);
  const itemsOf = (separator: string) => fromText((text) => text.split(separator).map((item) => item.trim()));
  const schema = z
    .strictObject({
      customer: NEW_CUSTOMER_ID,
      value,
      sha256,
      name,
      expires_at: z.preprocess(time, expires_at),
      scopes: z.preprocess(itemsOf(' '), scopes),
      allowed_addresses: z.preprocess(itemsOf(','), allowed_addresses),
      requests_per_hour: z.preprocess(fromText(numberIn), requests_per_hour),
    })
    .refine((key) => (key.value === undefined) !== (key.sha256 === undefined), {
      path: ['value, sha256'],
      message: 'exactly one of the two must be given',
    });
  return {
    schema,
    read: csvOrJsonLines(Object.keys(schema.shape), (header) => {
      if (!header.includes('customer')) return 'no column customer';
      if (header.includes('value') || header.includes('sha256')) return undefined;
      return 'neither a column value nor a column sha256';
    }),
    identity: { name: 'key', of: digestOf },
  };
}

/** Returns undefined for a line that names no key. */
function digestOf({ value, sha256 }: { readonly value?: unknown; readonly sha256?: unknown }): string | undefined {
  if (typeof value === 'string') return sha256Hex(value);
  return typeof sha256 === 'string' ? sha256.toLowerCase() : undefined;
}

/** Returns a fault for each line whose customer does not exist. */
async function missingCustomers(client: AdminClient, lines: readonly RawLine[]): Promise<LineFault[]> {
  const named = lines.flatMap(({ line, members }) => {
    const { data: customer } = NEW_CUSTOMER_ID.safeParse(members.customer);
    return customer === undefined ? [] : [{ line, customer }];
  });
  const missing = new Set<string>();
  await severalAtOnce([...new Set(named.map(({ customer }) => customer))], async (customer) => {
    if ((await findCustomer(client, customer)) === undefined) missing.add(customer);
  });
  // The id is not repeated: if the columns are mixed up, it is a key.
  const what = 'customer: there is no customer with this id; create it first';
  return named.filter(({ customer }) => missing.has(customer)).map(({ line }) => ({ line, what }));
}

async function importOne(client: AdminClient, { line: _, customer, ...body }: Line<KeyItem>): Promise<ImportResult> {
  try {
    const { id } = await client.call('POST /admin/v1/customers/:id/keys', { id: customer, body });
    return { outcome: 'imported', keyId: id };
  } catch (error) {
    const isThere = error instanceof AdminRefusal && error.problem.key_owner === 'this_customer';
    if (isThere) return { outcome: 'already there' };
    throw error;
  }
}

async function tryOne(client: AdminClient, item: KeyItem): Promise<ImportResult> {
  const [key] = await client.list('GET /admin/v1/keys', { query: { sha256: digestOf(item) } });
  if (key === undefined) return { outcome: 'would be imported' };
  return key.customer === item.customer
    ? { outcome: 'already there' }
    : { outcome: 'refused', refusal: 'Another customer has this key already.' };
}
