/** Imports or applies a file: the whole file is checked first, then its items are, several at once. */
import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import type { z } from 'zod';
import type { CustomerDocument } from '../api/admin/responses.ts';
import type { AdminClient } from '../api/client/admin-client.ts';
import { AdminRefusal, describeProblem } from '../api/client/failures.ts';
import { systemReason } from '../config/problems.ts';
import type { DocumentOptions } from './admin-commands.ts';
import { connect } from './connect.ts';
import type { LineFault } from './csv.ts';
import { FaultyFileError } from './exit-status.ts';
import { type ImportFile, inOrder, type Layout, type Line, type RawLine, readImportFile } from './import-file.ts';
import { printList, remark } from './output.ts';
import type { Columns } from './table.ts';

export interface ImportOptions extends DocumentOptions {
  /** `-` is standard input. */
  readonly file: string;
  readonly dryRun?: true | undefined;
}

/** The result of importing or applying one item. */
export interface ImportResult {
  readonly outcome:
    | 'would be imported'
    | 'imported'
    | 'already there'
    /** The customer exists with other values, which are not changed. */
    | 'differs'
    | `${'' | 'would be '}${'created' | 'changed' | 'deleted'}`
    | 'unchanged'
    | 'refused'
    | 'not known'
    | 'not tried';
  /** The id of the new key. */
  readonly keyId?: string;
  /** Why the gateway refused it, or would. */
  readonly refusal?: string;
  /** Members that differ from the existing customer. */
  readonly differs?: readonly string[];
  /** Values of the members that are changed; null is not set. */
  readonly changes?: Readonly<Record<string, { readonly before: unknown; readonly after: unknown }>>;
}

type Item<Schema extends z.ZodObject> = Line<z.output<Schema>>;

/** How items of one kind are imported. `Row`: what the report shows of an item, besides its line and its outcome. */
interface Importer<Schema extends z.ZodObject, Row extends object> extends Layout<Schema> {
  /** A plural noun. */
  readonly items: string;
  /** Returns the faults that only the gateway knows. */
  readonly askGateway: (client: AdminClient, lines: readonly RawLine[]) => Promise<readonly LineFault[]>;
  importOne(client: AdminClient, item: Item<Schema>): Promise<ImportResult>;
  /** Returns what importing the item would do. */
  tryOne(client: AdminClient, item: Item<Schema>): Promise<ImportResult>;
  row(item: Item<Schema>, result: ImportResult): Row;
  readonly columns: Columns<Row>;
}

/** Enough to hide round trips, and few enough for the gateway to serve other clients meanwhile. */
const MAX_CALLS_IN_FLIGHT = 8;

/** Returns the customer; undefined if it does not exist. */
export function findCustomer(client: AdminClient, customer: string): Promise<CustomerDocument | undefined> {
  return client.call('GET /admin/v1/customers/:id', { id: customer }).catch((error: unknown) => {
    if (error instanceof AdminRefusal && error.problem.status === 404) return undefined;
    throw error;
  });
}

/** Imports the file and prints a report. Rejects with a line `file:line: what is wrong` for each fault. */
export async function importFile<Schema extends z.ZodObject, Row extends object>(
  options: ImportOptions,
  importer: Importer<Schema, Row>,
): Promise<void> {
  const { file, dryRun } = options;
  const { items, ...checks } = readImportFile(await readContent(file), importer);
  const client = await requireNoFaults(options, checks, importer.askGateway, NOTHING);
  const attempted = await attemptEach(items, (item) => (dryRun ? importer.tryOne : importer.importOne)(client, item));
  const rows = attempted.attempts.map(({ item, result }) => ({
    line: item.line,
    outcome: result.outcome,
    ...importer.row(item, result),
  }));
  const columns: Columns<(typeof rows)[number]> = {
    LINE: ({ line }) => line,
    OUTCOME: ({ outcome }) => outcome,
    ...importer.columns,
  };
  await printList(`${importer.items} in the file`, columns, rows, options);
  if (rows.some(({ outcome }) => outcome === 'differs')) {
    remark('Customers that differ were not changed. "tollgate customers update" or "customers apply" changes them.');
  }
  if (dryRun) remark(NOTHING);
  const consequence = dryRun ? 'All other lines would be imported.' : 'All other lines are imported.';
  requireSuccess(file, attempted, STOPPED, consequence);
}

const NOTHING = 'Nothing was imported.';
const STOPPED = 'The import stopped. Run it again: existing records are not changed.';

interface Attempts<Item> {
  readonly attempts: readonly { readonly item: Item; readonly result: ImportResult }[];
  /** Reasons why further calls would fail, too: the other items were not tried. */
  readonly errors: readonly unknown[];
}

/** Calls `work` for the items, several at once, until a call fails for a reason that is not the item. */
export async function attemptEach<Item>(
  items: readonly Item[],
  work: (item: Item) => Promise<ImportResult>,
): Promise<Attempts<Item>> {
  const attempts = items.map((item) => ({ item, result: { outcome: 'not tried' } as ImportResult }));
  const errors: unknown[] = [];
  await severalAtOnce(attempts, async (each) => {
    if (errors.length > 0) return;
    try {
      each.result = await work(each.item);
    } catch (error) {
      // Deleted meanwhile (404), of another customer (409), or against a stricter rule of the gateway (422): only
      // this item fails.
      const isRefused = error instanceof AdminRefusal && [404, 409, 422].includes(error.problem.status);
      each.result = isRefused
        ? { outcome: 'refused', refusal: describeProblem(error.problem) }
        : { outcome: 'not known' };
      if (!isRefused) errors.push(error);
    }
  });
  return { attempts, errors };
}

/** Throws what went wrong, followed by what that means: `stopped` after an error, `others` after refused items. */
export function requireSuccess(
  file: string,
  { attempts, errors }: Attempts<{ readonly line: number }>,
  stopped: string,
  others: string,
): void {
  if (errors.length > 0) throw new Error(`${reasonOf(errors[0])}\n${stopped}`);
  const refused = attempts.flatMap(({ item: { line }, result: { refusal: what } }) => (what ? [{ line, what }] : []));
  if (refused.length > 0) throw faultsIn(file, refused, others);
}

export function readContent(file: string): Promise<Uint8Array> {
  if (file === '-') return buffer(process.stdin);
  return readFile(file).catch((error: unknown) => {
    throw new Error(`${file}: cannot be read: ${systemReason(error)}`);
  });
}

/**
 * Resolves to a client of the gateway if the file has no faults. Otherwise rejects with all of them, including those
 * that only the gateway knows. If asking the gateway fails, rejects with the file's own faults. `nothing`: the last line of
 * the error.
 */
export async function requireNoFaults(
  options: ImportOptions,
  { lines, faults }: Pick<ImportFile<unknown>, 'lines' | 'faults'>,
  askGateway: Importer<z.ZodObject, object>['askGateway'],
  nothing: string,
): Promise<AdminClient> {
  const refuse = (all: readonly LineFault[], ...remarks: string[]) => faultsIn(options.file, all, ...remarks, nothing);
  if (lines.length === 0 && faults.length > 0) throw refuse(faults);
  let all: readonly LineFault[];
  let client: AdminClient;
  try {
    client = await connect(options);
    all = inOrder([...faults, ...(await askGateway(client, lines))]);
  } catch (error) {
    if (faults.length === 0) throw error;
    throw refuse(faults, `There may be more: ${reasonOf(error)}`);
  }
  if (all.length > 0) throw refuse(all);
  return client;
}

/** Calls `work` for the items, several at once. Rejects if a call does. */
export async function severalAtOnce<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const left = items.values();
  const run = async () => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: MAX_CALLS_IN_FLIGHT }, run));
}

function faultsIn(file: string, faults: readonly LineFault[], ...remarks: string[]): FaultyFileError {
  return new FaultyFileError([...faults.map(({ line, what }) => `${shownFile(file)}:${line}: ${what}`), ...remarks]);
}

export function shownFile(file: string): string {
  return file === '-' ? 'standard input' : file;
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
