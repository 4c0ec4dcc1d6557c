/** Shared code of imports: the whole file is checked first, then its lines are imported, several at once. */
import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import type { ProblemDocument } from '../admin-api/responses.ts';
import type { AdminClient } from '../admin-client/admin-client.ts';
import { AdminRefusal, describeProblem } from '../admin-client/failures.ts';
import { systemReason } from '../config/problems.ts';
import type { DocumentOptions } from './admin-options.ts';
import { connect } from './connect.ts';
import { FaultyFileError } from './exit-status.ts';
import { type ImportFile, inOrder, type LineFault, type RawLine } from './import-file.ts';

export interface ImportOptions extends DocumentOptions {
  /** `-` is standard input. */
  readonly file: string;
  readonly dryRun?: true;
}

export type Outcome =
  | 'would be imported'
  | 'imported'
  | 'already there'
  /** Exists already with other values, which are not changed. */
  | 'differs'
  | 'refused'
  | 'not known'
  | 'not tried';

export interface Imported {
  readonly outcome: Outcome;
  /** The id of the new key. */
  readonly keyId?: string;
  /** Why the gateway would refuse it. */
  readonly refusal?: string;
  /** Members that differ from the existing customer. */
  readonly differs?: readonly string[];
}

export interface ImportReport {
  /** In the order of the items. */
  readonly results: readonly Imported[];
  readonly refused: readonly LineFault[];
  /** The error that stopped the import. */
  readonly broken?: unknown;
}

/** Enough to hide round trips, and few enough for the gateway to serve other clients meanwhile. */
const CALLS_AT_ONCE = 8;

export async function readContent(file: string): Promise<Uint8Array> {
  if (file === '-') return buffer(process.stdin);
  try {
    return await readFile(file);
  } catch (error) {
    throw new Error(`${file}: cannot be read: ${systemReason(error)}`);
  }
}

/**
 * Resolves to a client of the gateway if the file has no faults. Otherwise rejects with all of them, including those
 * that `askGateway` finds. If asking the gateway fails, rejects with the file's own faults.
 */
export async function checkFile(
  options: ImportOptions,
  { lines, faults }: ImportFile<unknown>,
  askGateway: (client: AdminClient, lines: readonly RawLine[]) => Promise<readonly LineFault[]>,
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
export async function importAll<Item extends { readonly line: number }>(
  items: readonly Item[],
  importOne: (item: Item) => Promise<Imported>,
): Promise<ImportReport> {
  const results: Imported[] = items.map(() => ({ outcome: 'not tried' }));
  const refused: LineFault[] = [];
  const broken: unknown[] = [];
  await severalAtOnce(items, async (item, index) => {
    try {
      const result = await importOne(item);
      results[index] = result;
      if (result.refusal !== undefined) refused.push({ line: item.line, what: result.refusal });
    } catch (error) {
      const isRefused = error instanceof AdminRefusal && isAboutTheItem(error.problem);
      results[index] = { outcome: isRefused ? 'refused' : 'not known' };
      if (isRefused) refused.push({ line: item.line, what: describeProblem(error.problem) });
      else broken.push(error);
    }
    return broken.length === 0;
  });
  return { results, refused: inOrder(refused), ...(broken.length > 0 && { broken: broken[0] }) };
}

/** Calls `work` for the items in order, until it resolves to false or rejects. Then awaits the calls in flight. */
export async function severalAtOnce<Item>(
  items: readonly Item[],
  work: (item: Item, index: number) => Promise<boolean>,
): Promise<void> {
  const left = items.entries();
  let goesOn = true;
  const run = async () => {
    for (const [index, item] of left) {
      if (!goesOn) return;
      try {
        goesOn = (await work(item, index)) && goesOn;
      } catch (error) {
        goesOn = false;
        throw error;
      }
    }
  };
  const runs = await Promise.allSettled(Array.from({ length: CALLS_AT_ONCE }, run));
  const failed = runs.find((each) => each.status === 'rejected');
  if (failed) throw failed.reason;
}

/** Throws if the report shows refused lines or a stopped import. Call it after printing the report. */
export function requireSuccess({ file, dryRun }: ImportOptions, { refused, broken }: ImportReport): void {
  if (broken !== undefined) {
    throw new Error(`${reasonOf(broken)}\nThe import broke off. Repeat it: what is there already is left as it is.`);
  }
  const consequence = dryRun ? 'All other lines would be imported.' : 'All other lines are imported.';
  if (refused.length > 0) throw faultsIn(file, refused, consequence);
}

/**
 * Returns whether a refusal concerns this item only: it was deleted meanwhile (404), belongs to another customer (409),
 * or breaks rules of the gateway that are stricter than this program's (422).
 */
function isAboutTheItem({ status }: ProblemDocument): boolean {
  return status === 404 || status === 409 || status === 422;
}

function faultsIn(file: string, faults: readonly LineFault[], ...remarks: string[]): FaultyFileError {
  const shown = file === '-' ? 'standard input' : file;
  return new FaultyFileError([...faults.map(({ line, what }) => `${shown}:${line}: ${what}`), ...remarks]);
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
