/** The CSV file that keys are imported from: its columns, and everything that can be known to be wrong before it is sent. */
import { z } from 'zod';
import { CUSTOMER_ID, DISPLAY_NAME, expiry, KEY_SHA256, KEY_VALUE } from '../admin/members.ts';
import { sha256Hex } from '../keys/api-key.ts';
import { CsvError, type CsvRecord, parseCsv } from './csv.ts';

/** One key to import, as the admin API takes it; exactly one of `value` and `sha256` is there. */
export type KeyLine = { readonly line: number } & Readonly<z.output<ReturnType<typeof lineSchema>>>;

/** What is wrong, without the value of any key. */
export interface LineFault {
  readonly line: number;
  readonly what: string;
}

export interface KeysFile {
  readonly keys: readonly KeyLine[];
  readonly faults: readonly LineFault[];
}

const COLUMNS = ['customer', 'value', 'sha256', 'name', 'expires_at'] as const;
type ColumnName = (typeof COLUMNS)[number];

/** `nowMs`: what has expired by then is a fault. */
export function readKeysFile(content: Uint8Array, nowMs: number): KeysFile {
  let records: CsvRecord[];
  try {
    records = parseCsv(decode(content));
  } catch (error) {
    if (error instanceof CsvError) return faulty(error.line, error.message);
    throw error;
  }
  const [header, ...rest] = records;
  if (header === undefined) return faulty(1, `there is no header line; it names columns: ${COLUMNS.join(', ')}`);
  const headerFault = faultOfHeader(header.fields);
  if (headerFault !== undefined) return faulty(header.line, headerFault);
  const schema = lineSchema(nowMs);
  const read = rest.map((record) => readLine(header.fields, record, schema));
  const keys = read.flatMap(({ key }) => key ?? []);
  const faults = [...read.flatMap((each) => each.faults), ...repetitions(keys)];
  return { keys, faults: faults.toSorted((a, b) => a.line - b.line) };
}

function decode(content: Uint8Array): string {
  try {
    // A byte order mark, which spreadsheets write, is taken off by the decoder.
    return new TextDecoder('utf-8', { fatal: true }).decode(content);
  } catch {
    throw new CsvError(1, 'the file is not UTF-8 text');
  }
}

function faulty(line: number, what: string): KeysFile {
  return { keys: [], faults: [{ line, what }] };
}

function faultOfHeader(header: readonly string[]): string | undefined {
  const isColumn = (name: string): name is ColumnName => (COLUMNS as readonly string[]).includes(name);
  if (!header.every(isColumn)) {
    return `the header line has a column that is none of ${COLUMNS.join(', ')}; commas must separate them`;
  }
  if (new Set(header).size < header.length) return 'the header line names a column twice';
  if (!header.includes('customer')) return 'the header line has no column customer';
  return header.includes('value') || header.includes('sha256')
    ? undefined
    : 'the header line has neither a column value nor a column sha256';
}

function readLine(
  header: readonly string[],
  { line, fields }: CsvRecord,
  schema: ReturnType<typeof lineSchema>,
): { key?: KeyLine; faults: LineFault[] } {
  if (fields.length !== header.length) {
    const what = `it has ${fields.length} fields where the header line has ${header.length}`;
    return { faults: [{ line, what }] };
  }
  const given = header.map((name, index) => [name, fields[index]] as const).filter(([, text]) => text !== '');
  const checked = schema.safeParse({ customer: '', ...Object.fromEntries(given) });
  if (checked.success) return { key: { line, ...checked.data }, faults: [] };
  return { faults: checked.error.issues.map(({ path, message }) => ({ line, what: `${path.join('.')}: ${message}` })) };
}

/** What the admin API asks of each member, so that a file which passes here is not refused half-way there. */
function lineSchema(nowMs: number) {
  return z
    .strictObject({
      customer: CUSTOMER_ID,
      value: KEY_VALUE.optional(),
      sha256: KEY_SHA256.optional(),
      name: DISPLAY_NAME.optional(),
      expires_at: expiry(() => nowMs).optional(),
    })
    .refine(({ value, sha256 }) => (value === undefined) !== (sha256 === undefined), {
      path: ['value, sha256'],
      message: 'exactly one of the two must be given',
    });
}

/** The same key twice is a mistake of whoever wrote the file, if only because one of the two lines would be ignored. */
function repetitions(keys: readonly KeyLine[]): LineFault[] {
  const firstLines = new Map<string, number>();
  return keys.flatMap(({ line, value, sha256 }) => {
    const digest = value === undefined ? (sha256 ?? '') : sha256Hex(value);
    const first = firstLines.get(digest);
    if (first !== undefined) return [{ line, what: `it has the same key as line ${first}` }];
    firstLines.set(digest, line);
    return [];
  });
}
