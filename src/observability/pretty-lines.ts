/** Log lines for a terminal: `12:00:00.000 INFO  tollgate started version=0.2.0 …`. For programs, lines stay JSON. */
import type { LogDestination } from './logger.ts';

const LEVEL_COLORS: Readonly<Record<string, string>> = { warn: '\x1b[33m', error: '\x1b[31m', fatal: '\x1b[31m' };
const DIM = '\x1b[2m';
const RESET = '\x1b[0m';
/** Printable ASCII without spaces, `"` and `=`. */
const PLAIN_WORD = /^[\x21\x23-\x3c\x3e-\x7e]+$/;

/** Formats each JSON line before passing it to `destination`. A line that is not JSON is passed unchanged. */
export function prettyLines(destination: LogDestination, { colors }: { readonly colors: boolean }): LogDestination {
  return { write: (line) => destination.write(prettyLine(line, colors)) };
}

/** Formats one line. `line` and the result end in a newline. An error's stack follows on separate lines. */
function prettyLine(line: string, colors: boolean): string {
  const record = parseRecord(line);
  if (record === undefined) return line;
  const { level, time, msg = '', err, ...members } = record;
  const { stack, ...error } = isObject(err) ? err : {};
  const fields = Object.entries(isObject(err) ? { ...members, err: error } : members)
    .map(([name, value]) => ` ${name}=${inWords(value)}`)
    .join('');
  const paint = (text: string, color = '') => (colors && color !== '' && text !== '' ? color + text + RESET : text);
  const label = paint(String(level).toUpperCase().padEnd(5), LEVEL_COLORS[String(level)]);
  const trace = typeof stack === 'string' ? `\n${printable(stack).replaceAll(/^/gm, '    ')}` : '';
  return `${timeOfDay(String(time))} ${label} ${printable(String(msg))}${paint(fields, DIM)}${trace}\n`;
}

function parseRecord(line: string): Record<string, unknown> | undefined {
  try {
    const record: unknown = JSON.parse(line);
    return isObject(record) ? record : undefined;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** Removes control characters other than newlines: a client could control the terminal with them. */
function printable(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n]/gu, '');
}

/** Returns a printable word unchanged, anything else as JSON. */
function inWords(value: unknown): string {
  return typeof value === 'string' && PLAIN_WORD.test(value) ? value : printable(JSON.stringify(value));
}

/** In local time, for the person at the terminal. */
function timeOfDay(isoTime: string): string {
  const time = new Date(isoTime);
  return `${time.toTimeString().slice(0, 8)}.${String(time.getMilliseconds()).padStart(3, '0')}`;
}
