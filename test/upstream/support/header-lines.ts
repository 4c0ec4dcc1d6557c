import { headerLine } from '../../../src/upstream/http1/upstream-connection.ts';

/** Returns flat headers (name, value, …) as they are sent. */
export function linesOf(headers: readonly string[]): string {
  return headers.map((name, i) => (i % 2 === 0 ? headerLine(name, headers[i + 1] ?? '') : '')).join('');
}

/** The reverse of {@link linesOf}. */
export function headersIn(lines: string): string[] {
  const [, ...each] = lines.split('\r\n');
  return each.flatMap((line) => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon), line.slice(colon + 2)];
  });
}
