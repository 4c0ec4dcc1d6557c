/** Imports a file: the whole file is checked first, then its lines are imported, several at once. */
import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import type { CustomerDocument } from '../admin-api/responses.ts';
import type { AdminClient } from '../admin-client/admin-client.ts';
import { AdminRefusal, describeProblem } from '../admin-client/failures.ts';
import { systemReason } from '../config/problems.ts';
import type { DocumentOptions } from './admin-commands.ts';
import { connect } from './connect.ts';
import { FaultyFileError } from './exit-status.ts';
import { type ImportFile, inOrder, type Line, type LineFault, type RawLine } from './import-file.ts';
import { printList, remark } from './output.ts';
import type { Columns } from './table.ts';

export interface ImportOptions extends DocumentOptions {
  /** `-` is standard input. */
  readonly file: string;
  readonly dryRun?: true | undefined;
}

/** The result of importing one line. */
export interface ImportResult {
  readonly outcome:
    | 'would be imported'
    | 'imported'
    | 'already there'
    /** The customer exists with other values, which are not changed. */
    | 'differs'
    | 'refused'
    | 'not known'
    | 'not tried';
  /** The id of the new key. */
  readonly keyId?: string;
  /** Why the gateway would refuse it. */
  readonly refusal?: string;
  /** Members that differ from the existing customer. */
  readonly differs?: readonly string[];
}

/** How items of one kind are imported. `Row`: what the report shows of an item, besides its line and its outcome. */
interface Importer<Item, Row extends object> {
  /** A plural noun. */
  readonly items: string;
  read(content: Uint8Array): ImportFile<Item>;
  /** Returns the faults that only the gateway knows. */
  askGateway(client: AdminClient, lines: readonly RawLine[]): Promise<readonly LineFault[]>;
  importOne(client: AdminClient, item: Line<Item>): Promise<ImportResult>;
  /** Returns what importing the item would do. */
  tryOne(client: AdminClient, item: Line<Item>): Promise<ImportResult>;
  row(item: Line<Item>, result: ImportResult): Row;
  readonly columns: Columns<Row>;
}

interface Report {
  /** In the order of the items. */
  readonly results: readonly ImportResult[];
  readonly refused: readonly LineFault[];
  /** The error that stopped the import. */
  readonly stoppedBy?: unknown;
}

/** Enough to hide round trips, and few enough for the gateway to serve other clients meanwhile. */
const MAX_CALLS_IN_FLIGHT = 8;

/** Returns the customer; undefined if it does not exist. */
export async function findCustomer(client: AdminClient, customer: string): Promise<CustomerDocument | undefined> {
  try {
    return await client.call('GET /admin/v1/customers/:id', { id: customer });
  } catch (error) {
    if (error instanceof AdminRefusal && error.problem.status === 404) return undefined;
    throw error;
  }
}

/** Imports the file and prints a report. Rejects with a line `file:line: what is wrong` for each fault. */
export async function importFile<Item, Row extends object>(
  options: ImportOptions,
  importer: Importer<Item, Row>,
): Promise<void> {
  const { dryRun } = options;
  const { items, ...checks } = importer.read(await readContent(options.file));
  const client = await requireNoFaults(options, checks, importer);
  const report = await importAll(items, (item) => (dryRun ? importer.tryOne : importer.importOne)(client, item));
  const rows = items.map((item, index) => {
    const result = report.results[index] ?? { outcome: 'not tried' };
    return { line: item.line, outcome: result.outcome, ...importer.row(item, result) };
  });
  const columns: Columns<(typeof rows)[number]> = {
    LINE: ({ line }) => line,
    OUTCOME: ({ outcome }) => outcome,
    ...importer.columns,
  };
  await printList(`${importer.items} in the file`, columns, rows, options);
  if (report.results.some(({ outcome }) => outcome === 'differs')) {
    remark('Customers that differ were not changed. "tollgate customers update" changes them.');
  }
  if (dryRun) remark('Nothing was imported.');
  requireSuccess(options, report);
}

async function readContent(file: string): Promise<Uint8Array> {
  if (file === '-') return buffer(process.stdin);
  try {
    return await readFile(file);
  } catch (error) {
    throw new Error(`${file}: cannot be read: ${systemReason(error)}`);
  }
}

/**
 * Resolves to a client of the gateway if the file has no faults. Otherwise rejects with all of them, including those
 * that only the gateway knows. If asking the gateway fails, rejects with the file's own faults.
 */
async function requireNoFaults(
  options: ImportOptions,
  { lines, faults }: Pick<ImportFile<unknown>, 'lines' | 'faults'>,
  { askGateway }: Pick<Importer<never, object>, 'askGateway'>,
): Promise<AdminClient> {
  const refuse = (all: readonly LineFault[], ...remarks: string[]) =>
    faultsIn(options.file, all, ...remarks, 'Nothing was imported.');
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

/** Imports each item, until a call fails for a reason that would make further calls fail too. */
async function importAll<Item extends { readonly line: number }>(
  items: readonly Item[],
  importOne: (item: Item) => Promise<ImportResult>,
): Promise<Report> {
  const results: ImportResult[] = items.map(() => ({ outcome: 'not tried' }));
  const refused: LineFault[] = [];
  const errors: unknown[] = [];
  await severalAtOnce(items, async (item, index) => {
    if (errors.length > 0) return;
    try {
      const result = await importOne(item);
      results[index] = result;
      if (result.refusal !== undefined) refused.push({ line: item.line, what: result.refusal });
    } catch (error) {
      // Deleted meanwhile (404), of another customer (409), or against a stricter rule of the gateway (422): only
      // this item fails.
      const isRefused = error instanceof AdminRefusal && [404, 409, 422].includes(error.problem.status);
      results[index] = { outcome: isRefused ? 'refused' : 'not known' };
      if (isRefused) refused.push({ line: item.line, what: describeProblem(error.problem) });
      else errors.push(error);
    }
  });
  return { results, refused: inOrder(refused), ...(errors.length > 0 && { stoppedBy: errors[0] }) };
}

/** Calls `work` for the items, several at once. Rejects if a call does. */
export async function severalAtOnce<Item>(
  items: readonly Item[],
  work: (item: Item, index: number) => Promise<void>,
): Promise<void> {
  const left = items.entries();
  const run = async () => {
    for (const [index, item] of left) await work(item, index);
  };
  await Promise.all(Array.from({ length: MAX_CALLS_IN_FLIGHT }, run));
}

/** Throws if the report shows refused lines or a stopped import. Call it after printing the report. */
function requireSuccess({ file, dryRun }: ImportOptions, { refused, stoppedBy }: Report): void {
  if (stoppedBy !== undefined) {
    throw new Error(`${reasonOf(stoppedBy)}\nThe import stopped. Run it again: existing records are not changed.`);
  }
  const consequence = dryRun ? 'All other lines would be imported.' : 'All other lines are imported.';
  if (refused.length > 0) throw faultsIn(file, refused, consequence);
}

function faultsIn(file: string, faults: readonly LineFault[], ...remarks: string[]): FaultyFileError {
  const shown = file === '-' ? 'standard input' : file;
  return new FaultyFileError([...faults.map(({ line, what }) => `${shown}:${line}: ${what}`), ...remarks]);
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
