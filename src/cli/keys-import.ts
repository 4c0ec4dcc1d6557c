/**
 * Imports keys that were created elsewhere. The whole file is checked first, also against the admin API; only then are
 * keys imported. A key that its customer already has is not changed, so the same file can be imported again.
 */
import { NEW_CUSTOMER_ID } from '../admin-api/requests.ts';
import { KEY, NEW_KEY } from '../admin-api/responses.ts';
import { type AdminClient, pathOf } from '../admin-client/admin-client.ts';
import { AdminRefusal } from '../admin-client/failures.ts';
import { sha256Hex } from '../keys/api-key.ts';
import { findCustomer } from './customers.ts';
import {
  checkFile,
  type Imported,
  type ImportOptions,
  importAll,
  type Outcome,
  readContent,
  requireSuccess,
  severalAtOnce,
} from './import.ts';
import type { LineFault, RawLine } from './import-file.ts';
import { type KeyLine, readKeysFile } from './keys-file.ts';
import { printList, remark } from './output.ts';
import type { Column } from './table.ts';

interface Row {
  readonly line: number;
  readonly outcome: Outcome;
  readonly customer: string;
  /** The id of the imported key. */
  readonly key_id: string | null;
  readonly name: string | null;
}

const COLUMNS: readonly Column<Row>[] = [
  { title: 'LINE', cell: ({ line }) => line },
  { title: 'OUTCOME', cell: ({ outcome }) => outcome },
  { title: 'CUSTOMER', cell: ({ customer }) => customer },
  { title: 'KEY', cell: ({ key_id }) => key_id },
  { title: 'NAME', cell: ({ name }) => name },
];

/** Imports the file. Rejects with a line `file:line: what is wrong` for each fault. */
export async function importKeys(options: ImportOptions): Promise<void> {
  const file = readKeysFile(await readContent(options.file), Date.now());
  const client = await checkFile(options, file, withoutCustomer);
  const report = await importAll(file.items, (key) => (options.dryRun ? tryOne : importOne)(client, key));
  await printList('keys in the file', COLUMNS, rows(file.items, report.results), options);
  if (options.dryRun) remark('Nothing was imported.');
  requireSuccess(options, report);
}

function rows(keys: readonly KeyLine[], results: readonly Imported[]): Row[] {
  return keys.map(({ line, customer, name }, index) => {
    const { outcome = 'not tried', keyId } = results[index] ?? {};
    return { line, outcome, customer, key_id: keyId ?? null, name: name ?? null };
  });
}

async function withoutCustomer(client: AdminClient, lines: readonly RawLine[]): Promise<LineFault[]> {
  const named = lines.flatMap(({ line, members }) => {
    const { data: customer } = NEW_CUSTOMER_ID.safeParse(members.customer);
    return customer === undefined ? [] : [{ line, customer }];
  });
  const missing = new Set<string>();
  await severalAtOnce([...new Set(named.map(({ customer }) => customer))], async (customer) => {
    if ((await findCustomer(client, customer)) === undefined) missing.add(customer);
    return true;
  });
  // The id is not repeated: if the columns are mixed up, it is a key.
  const what = 'customer: there is no customer with this id; create it first';
  return named.filter(({ customer }) => missing.has(customer)).map(({ line }) => ({ line, what }));
}

async function importOne(client: AdminClient, { line: _, customer, ...body }: KeyLine): Promise<Imported> {
  try {
    const { id } = await client.post(NEW_KEY, pathOf`/admin/v1/customers/${customer}/keys`, body);
    return { outcome: 'imported', keyId: id };
  } catch (error) {
    if (error instanceof AdminRefusal && error.problem.key_owner === 'this_customer')
      return { outcome: 'already there' };
    throw error;
  }
}

async function tryOne(client: AdminClient, { customer, value, sha256 }: KeyLine): Promise<Imported> {
  const digest = value === undefined ? sha256 : sha256Hex(value);
  const [key] = await client.list(KEY, '/admin/v1/keys', { query: { sha256: digest ?? '' } });
  if (key === undefined) return { outcome: 'would be imported' };
  return key.customer === customer
    ? { outcome: 'already there' }
    : { outcome: 'refused', refusal: 'Another customer has this key already.' };
}
