/**
 * Keys that were made elsewhere, from a CSV file. All of it is checked first, against the admin API too; only then is
 * anything imported. A key that its customer has already is left as it is, so the same file may be sent again.
 */
import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { type AdminClient, pathOf } from '../admin-client/admin-client.ts';
import { CUSTOMER, IMPORTED_KEY, type ProblemDocument } from '../admin-client/documents.ts';
import { AdminRefusal, describeProblem } from '../admin-client/failures.ts';
import { systemReason } from '../config/problems.ts';
import type { DocumentOptions, JsonOption } from './admin-options.ts';
import { connect } from './connect.ts';
import { FaultyFileError } from './exit-status.ts';
import { type KeyLine, type LineFault, readKeysFile } from './keys-file.ts';
import { printList, remark } from './output.ts';
import type { Column } from './table.ts';

export interface ImportOptions extends DocumentOptions {
  /** `-` is standard input. */
  readonly file: string;
  readonly dryRun?: true;
}

type Outcome = 'would be imported' | 'imported' | 'already there' | 'refused' | 'not known' | 'not tried';

interface ImportedLine {
  readonly line: number;
  readonly outcome: Outcome;
  readonly customer: string;
  /** The id of what was imported. */
  readonly key_id: string | null;
  readonly name: string | null;
}

const COLUMNS: readonly Column<ImportedLine>[] = [
  { title: 'LINE', cell: ({ line }) => line },
  { title: 'OUTCOME', cell: ({ outcome }) => outcome },
  { title: 'CUSTOMER', cell: ({ customer }) => customer },
  { title: 'KEY', cell: ({ key_id }) => key_id },
  { title: 'NAME', cell: ({ name }) => name },
];

/** Rejects with a line `file:line: what is wrong` for each fault. */
export async function importKeys(options: ImportOptions): Promise<void> {
  const { keys, faults } = readKeysFile(await readContent(options.file), Date.now());
  if (faults.length > 0) throw faultsIn(options.file, faults, 'Nothing was imported.');
  const client = await connect(options);
  const missing = await withoutCustomer(client, keys);
  if (missing.length > 0) throw faultsIn(options.file, missing, 'Nothing was imported.');
  if (options.dryRun) {
    await printLines(
      keys.map((key) => outcomeOf(key, 'would be imported')),
      options,
    );
    return remark('Nothing was imported. Keys that are there already show only when they are.');
  }
  const { lines, refused, broken } = await importAll(client, keys);
  await printLines(lines, options);
  if (broken !== undefined) throw brokenOff(broken);
  if (refused.length > 0) throw faultsIn(options.file, refused, 'All other lines are imported.');
}

function printLines(lines: readonly ImportedLine[], options: JsonOption): Promise<void> {
  return printList('keys in the file', COLUMNS, lines, options);
}

async function readContent(file: string): Promise<Uint8Array> {
  if (file === '-') return buffer(process.stdin);
  try {
    return await readFile(file);
  } catch (error) {
    throw new Error(`${file}: cannot be read: ${systemReason(error)}`);
  }
}

async function withoutCustomer(client: AdminClient, keys: readonly KeyLine[]): Promise<LineFault[]> {
  const missing = new Set<string>();
  for (const customer of new Set(keys.map((key) => key.customer))) {
    if (!(await hasCustomer(client, customer))) missing.add(customer);
  }
  // The id is not repeated: where columns were mixed up it is a key.
  const what = 'customer: there is no customer with this id; create it first';
  return keys.filter(({ customer }) => missing.has(customer)).map(({ line }) => ({ line, what }));
}

async function hasCustomer(client: AdminClient, customer: string): Promise<boolean> {
  try {
    await client.get(CUSTOMER, pathOf`/admin/v1/customers/${customer}`);
    return true;
  } catch (error) {
    if (error instanceof AdminRefusal && error.problem.status === 404) return false;
    throw error;
  }
}

interface ImportReport {
  readonly lines: readonly ImportedLine[];
  readonly refused: readonly LineFault[];
  /** Why it went no further. */
  readonly broken?: unknown;
}

/** One after the other, in the order of the file, until a call fails for a reason that the next one would meet too. */
async function importAll(client: AdminClient, keys: readonly KeyLine[]): Promise<ImportReport> {
  const lines: ImportedLine[] = [];
  const refused: LineFault[] = [];
  for (const [index, key] of keys.entries()) {
    try {
      const id = await importOne(client, key);
      lines.push(id === undefined ? outcomeOf(key, 'already there') : outcomeOf(key, 'imported', id));
    } catch (error) {
      if (!(error instanceof AdminRefusal) || !isAboutTheKey(error.problem)) {
        const rest = keys.slice(index + 1).map((untried) => outcomeOf(untried, 'not tried'));
        return { lines: [...lines, outcomeOf(key, 'not known'), ...rest], refused, broken: error };
      }
      lines.push(outcomeOf(key, 'refused'));
      refused.push({ line: key.line, what: describeProblem(error.problem) });
    }
  }
  return { lines, refused };
}

/** The id of the new key; undefined when the customer had it already. */
async function importOne(client: AdminClient, { line: _, customer, ...body }: KeyLine): Promise<string | undefined> {
  try {
    return (await client.post(IMPORTED_KEY, pathOf`/admin/v1/customers/${customer}/keys`, body)).id;
  } catch (error) {
    if (error instanceof AdminRefusal && error.problem.key_owner === 'this_customer') return undefined;
    throw error;
  }
}

/** Its customer was deleted meanwhile, another one has the key, or the gateway's rules are stricter than ours. */
function isAboutTheKey({ status }: ProblemDocument): boolean {
  return status === 404 || status === 409 || status === 422;
}

function outcomeOf({ line, customer, name }: KeyLine, outcome: Outcome, keyId?: string): ImportedLine {
  return { line, outcome, customer, key_id: keyId ?? null, name: name ?? null };
}

function faultsIn(file: string, faults: readonly LineFault[], consequence: string): FaultyFileError {
  const shown = file === '-' ? 'standard input' : file;
  return new FaultyFileError([...faults.map(({ line, what }) => `${shown}:${line}: ${what}`), consequence]);
}

function brokenOff(error: unknown): Error {
  const reason = error instanceof Error ? error.message : String(error);
  return new Error(`${reason}\nThe import broke off. Repeat it: what is there already is left as it is.`);
}
