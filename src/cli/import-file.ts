/**
 * Reads import files: CSV with a header line, or JSON Lines (one object per line), distinguished by the first
 * character. One pass finds all faults. No fault repeats a value, because it may be a key.
 */
import type { z } from 'zod';
import { describeIssue } from '../api/admin/requests.ts';
import { type LineFault, parseCsv } from './csv.ts';

export type Line<Item> = Item & { readonly line: number };

/** The content of a line, unchecked. */
export interface RawLine {
  readonly line: number;
  readonly members: Readonly<Record<string, unknown>>;
}

export interface ImportFile<Item> {
  /** All lines that could be parsed, faulty ones included. */
  readonly lines: readonly RawLine[];
  /** Lines that are valid by themselves. */
  readonly items: readonly Line<Item>[];
  readonly faults: readonly LineFault[];
}

export interface Layout<Schema extends z.ZodObject> {
  /** Schema of one line: the members of a JSON object, or the columns of CSV, in any order. Empty or null is absent. */
  readonly schema: Schema;
  /** Returns what a CSV header lacks. */
  missingIn(header: readonly string[]): string | undefined;
  /** What no two lines may share, because the import would ignore one of them. */
  readonly identity: { readonly name: string; readonly of: (item: z.output<Schema>) => string };
}

type RawFile = Omit<ImportFile<unknown>, 'items'>;

export function readImportFile<Schema extends z.ZodObject>(
  content: Uint8Array,
  layout: Layout<Schema>,
): ImportFile<z.output<Schema>> {
  const text = decode(content);
  if (text === undefined) return { lines: [], items: [], faults: [{ line: 1, what: 'the file is not UTF-8 text' }] };
  const raw = text.trimStart().startsWith('{') ? readJsonLines(text) : readCsv(text, layout);
  const lines = raw.lines.map(({ line, members }) => ({ line, members: givenMembers(members) }));
  const items: Line<z.output<Schema>>[] = [];
  const faults = [...raw.faults];
  const firstLines = new Map<string, number>();
  for (const { line, members } of lines) {
    const { data, error } = layout.schema.safeParse(members, { reportInput: true });
    for (const issue of error?.issues ?? []) {
      faults.push({ line, what: describeIssue(issue, { whole: 'the line', member: 'member' }) });
    }
    if (data === undefined) continue;
    items.push({ ...data, line });
    const identity = layout.identity.of(data);
    const first = firstLines.get(identity);
    if (first === undefined) firstLines.set(identity, line);
    else faults.push({ line, what: `it has the same ${layout.identity.name} as line ${first}` });
  }
  return { lines, items, faults: inOrder(faults) };
}

/** Returns a converter of members that CSV has as text. */
export function fromText(convert: (text: string) => unknown): (value: unknown) => unknown {
  return (value) => (typeof value === 'string' ? convert(value) : value);
}

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

function readJsonLines(text: string): RawFile {
  const lines: RawLine[] = [];
  const faults: LineFault[] = [];
  for (const [index, source] of text.split('\n').entries()) {
    if (source.trim() === '') continue;
    const line = index + 1;
    const members = parseObject(source);
    if (members === undefined) faults.push({ line, what: 'it is not one complete JSON object' });
    else lines.push({ line, members });
  }
  return { lines, faults };
}

/** Discards the parser's error, because its message repeats the text. */
function parseObject(source: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(source);
    return typeof value === 'object' && !Array.isArray(value) && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

function readCsv(text: string, { schema, missingIn }: Pick<Layout<z.ZodObject>, 'schema' | 'missingIn'>): RawFile {
  const columns = Object.keys(schema.shape);
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
