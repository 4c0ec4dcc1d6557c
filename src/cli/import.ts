/** What imports have in common: a file is checked as a whole first, then its lines are imported, several at once. */
import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import type { AdminClient } from '../admin-client/admin-client.ts';
import type { ProblemDocument } from '../admin-client/documents.ts';
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
  /** It is there already, with other values, which are left as they are. */
  | 'differs'
  | 'refused'
  | 'not known'
  | 'not tried';

export interface Imported {
  readonly outcome: Outcome;
  /** The id that a new key was given. */
  readonly keyId?: string;
  /** Why it would be refused. */
  readonly refusal?: string;
  /** Members that differ. */
  readonly differs?: readonly string[];
}

export interface ImportReport {
  /** In the order of the items. */
  readonly results: readonly Imported[];
  readonly refused: readonly LineFault[];
  /** Why it went no further. */
  readonly broken?: unknown;
}

/** Enough to hide the round trips, and few enough for the gateway to serve others meanwhile. */
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
 * Resolves to a client of the gateway when the file has no fault. Rejects with all that it has: its own, and those that
 * `askGateway` finds. When the gateway cannot be asked, with the former.
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

/** Imports each item, until a call fails for a reason that the next one would meet too. */
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

/** Calls `work` for the items in order, until it resolves to false or rejects. Those under way then are waited for. */
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

/** Rejects as the report of an import demands, once its lines are printed. */
export function requireSuccess({ file, dryRun }: ImportOptions, { refused, broken }: ImportReport): void {
  if (broken !== undefined) {
    throw new Error(`${reasonOf(broken)}\nThe import broke off. Repeat it: what is there already is left as it is.`);
  }
  const consequence = dryRun ? 'All other lines would be imported.' : 'All other lines are imported.';
  if (refused.length > 0) throw faultsIn(file, refused, consequence);
}

/** Deleted meanwhile, of somebody else, or the gateway's rules are stricter than ours. */
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
