/**
 * Reads files of customers or keys. Imports are CSV with a header line, or JSON Lines (one object per line), distinguished
 * by the first character. One pass finds all faults. No fault repeats a value, because it may be a key.
 */
import type { z } from 'zod';
import { describeIssue } from '../api/admin/requests.ts';
import { UNREADABLE } from '../config/document.ts';
import type { Path } from '../config/problems.ts';
import { type LineFault, parseCsv } from './csv.ts';

export type Line<Item> = Item & { readonly line: number };

/** The content of a line, or of what takes several lines, unchecked. {@link UNREADABLE} members have a fault already. */
export interface RawLine {
  /** The first one. */
  readonly line: number;
  readonly members: Readonly<Record<string, unknown>>;
  /** Returns the line of a member; without it, all are on the first one. */
  readonly lineOf?: (path: Path) => number;
}

export interface ImportFile<Item> {
  /** All lines that could be parsed, faulty ones included. */
  readonly lines: readonly RawLine[];
  /** Lines that are valid by themselves. */
  readonly items: readonly Line<Item>[];
  readonly faults: readonly LineFault[];
}

export interface Layout<Schema extends z.ZodObject> {
  readonly schema: Schema;
  /** Returns what the text has, unchecked. */
  readonly read: (text: string) => RawFile;
  /** What no two lines may share, because one of them would be ignored. */
  readonly identity: { readonly name: string; readonly of: (members: RawLine['members']) => string | undefined };
}

export type RawFile = Omit<ImportFile<unknown>, 'items'>;

export function readImportFile<Schema extends z.ZodObject>(
  content: Uint8Array,
  layout: Layout<Schema>,
): ImportFile<z.output<Schema>> {
  const text = decode(content);
  if (text === undefined) return { lines: [], items: [], faults: [{ line: 1, what: 'the file is not UTF-8 text' }] };
  const { lines, faults: unparsed } = layout.read(text);
  const items: Line<z.output<Schema>>[] = [];
  const faults = [...unparsed];
  const firstLines = new Map<string, number>();
  for (const each of lines) {
    const { line, members } = each;
    const { data, error } = layout.schema.safeParse(members, { reportInput: true });
    for (const issue of (error?.issues ?? []).flatMap(onePerName)) {
      if (issue.input === UNREADABLE) continue;
      const path = [...(issue.path as Path), ...(issue.code === 'unrecognized_keys' ? issue.keys : [])];
      const what = describeIssue(issue, { whole: 'the line', member: 'member' });
      faults.push({ line: lineOfMember(each, path), what });
    }
    if (data !== undefined) items.push({ ...data, line });
    const identity = layout.identity.of(members);
    const first = identity === undefined ? undefined : firstLines.get(identity);
    if (first !== undefined) faults.push({ line, what: `it has the same ${layout.identity.name} as line ${first}` });
    else if (identity !== undefined) firstLines.set(identity, line);
  }
  return { lines, items, faults: inOrder(faults) };
}

export function lineOfMember({ line, lineOf }: RawLine, path: Path): number {
  return lineOf?.(path) ?? line;
}

/** Unknown members of one item may be on different lines. */
function onePerName(issue: z.core.$ZodIssue): readonly z.core.$ZodIssue[] {
  return issue.code === 'unrecognized_keys' ? issue.keys.map((key) => ({ ...issue, keys: [key] })) : [issue];
}

/** Returns a reader of files to import, in which an empty or null member is absent. `missingIn`: what a CSV header lacks. */
export function csvOrJsonLines(
  columns: readonly string[],
  missingIn: (header: readonly string[]) => string | undefined,
) {
  return (text: string): RawFile => {
    const { lines, faults } = text.trimStart().startsWith('{')
      ? readJsonLines(text)
      : readCsv(text, columns, missingIn);
    return { faults, lines: lines.map(({ line, members }) => ({ line, members: givenMembers(members) })) };
  };
}

/** Returns a converter of members that CSV has as text. */
export function fromText(convert: (text: string) => unknown): (value: unknown) => unknown {
  return (value) => (typeof value === 'string' ? convert(value) : value);
}

export const numberIn = (text: string) => (/^\d+$/.test(text) ? Number(text) : text);

function givenMembers(members: RawLine['members']): RawLine['members'] {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== '' && value !== null));
}

export function inOrder(faults: readonly LineFault[]): LineFault[] {
  return faults.toSorted((a, b) => a.line - b.line);
}

function decode(content: Uint8Array): string | undefined {
  try {
    // The decoder removes a byte order mark, which spreadsheets write.
    return new TextDecoder('utf-8', { fatal: true }).decode(content);
  } catch {
    return undefined;
  }
}

export function readJsonLines(text: string): RawFile {
  const lines: RawLine[] = [];
  const faults: LineFault[] = [];
  for (const [index, source] of text.split('\n').entries()) {
    if (source.trim() === '') continue;
    const line = index + 1;
    const members = parseObject(source);
    if (typeof members === 'string') faults.push({ line, what: members });
    else lines.push({ line, members });
  }
  return { lines, faults };
}

/** A string of JSON, and the colon after it if it is the name of a member. */
const JSON_STRING = /"(?:[^"\\]|\\.)*"\s*(:)?/g;

/** Returns the object, or what is wrong. Discards the parser's error, because its message repeats the text. */
function parseObject(source: string): Record<string, unknown> | string {
  const membersIn = (json: string) => [...json.matchAll(JSON_STRING)].filter(([, colon]) => colon !== undefined).length;
  try {
    const value: unknown = JSON.parse(source);
    if (typeof value !== 'object' || Array.isArray(value) || value === null) return NO_OBJECT;
    // Of equal names, the parser ignores all but the last.
    if (membersIn(source) !== membersIn(JSON.stringify(value))) return 'it has a member twice';
    return { ...value };
  } catch {
    return NO_OBJECT;
  }
}

const NO_OBJECT = 'it is not one complete JSON object';

function readCsv(
  text: string,
  columns: readonly string[],
  missingIn: (header: readonly string[]) => string | undefined,
): RawFile {
  const refuse = (line: number, what: string): RawFile => ({ lines: [], faults: [{ line, what }] });
  const records = parseCsv(text);
  if ('what' in records) return refuse(records.line, records.what);
  const [header, ...rest] = records;
  if (header === undefined) return refuse(1, `there is no header line; it names columns: ${columns.join(', ')}`);
  const names = header.fields;
  if (!names.every((name) => columns.includes(name))) {
    const what = `the header line has a column that is none of ${columns.join(', ')}; commas must separate them`;
    return refuse(header.line, what);
  }
  if (new Set(names).size < names.length) return refuse(header.line, 'the header line names a column twice');
  const missing = missingIn(names);
  if (missing !== undefined) return refuse(header.line, `the header line has ${missing}`);

  const lines: RawLine[] = [];
  const faults: LineFault[] = [];
  for (const { line, fields } of rest) {
    if (fields.length === names.length) {
      lines.push({ line, members: Object.fromEntries(names.map((name, index) => [name, fields[index]])) });
    } else faults.push({ line, what: `it has ${fields.length} fields where the header line has ${names.length}` });
  }
  return { lines, faults };
}
