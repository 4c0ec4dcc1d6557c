/**
 * Parses CSV by RFC 4180, no other dialect: commas, optional double quotes around fields, `""` for a quote inside them.
 * Lines end with LF or CRLF, optional on the last line. Empty lines are skipped.
 */

interface CsvRecord {
  /** The record's first line, from 1: a quoted field may span several lines. */
  readonly line: number;
  readonly fields: readonly string[];
}

export interface LineFault {
  readonly line: number;
  readonly what: string;
}

/** One field and its terminator: a comma, the end of the line or the end of the text. */
const FIELD = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/y;

/** Returns the records, or the first fault. */
export function parseCsv(text: string): readonly CsvRecord[] | LineFault {
  const records: CsvRecord[] = [];
  let fields: string[] = [];
  let [line, firstLine] = [1, 1];
  const field = new RegExp(FIELD);
  while (field.lastIndex < text.length || fields.length > 0) {
    const at = field.lastIndex;
    const match = field.exec(text);
    if (match === null) return { line, what: faultAt(text, at) };
    const [whole, quoted, plain = '', end = ''] = match;
    fields.push(quoted?.replaceAll('""', '"') ?? plain);
    line += whole.split('\n').length - 1;
    if (end === ',') continue;
    if (fields.length > 1 || whole !== end) records.push({ line: firstLine, fields });
    fields = [];
    firstLine = line;
  }
  return records;
}

/** Describes a syntax error without repeating the text, which may be a key. */
function faultAt(text: string, at: number): string {
  if (text[at] !== '"') return 'a quote or a lone carriage return in a field that is not in quotes';
  return /"(?:[^"]|"")*"/y.test(text.slice(at))
    ? 'after the closing quote of a field there must be a comma or the end of the line; a quote inside is written ""'
    : 'a quoted field that begins here is never closed';
}
