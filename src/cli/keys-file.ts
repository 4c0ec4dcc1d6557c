/** Reads the file of a key import, and finds all faults that can be found before it is sent. */
import { z } from 'zod';
import { DISPLAY_NAME, expiry, KEY_SHA256, KEY_VALUE, NEW_CUSTOMER_ID } from '../admin-api/requests.ts';
import { sha256Hex } from '../keys/api-key.ts';
import { type ImportFile, inOrder, type Line, readImportFile, repetitions } from './import-file.ts';
import { readTime } from './times.ts';

/** One key to import, in the admin API's form, with exactly one of `value` and `sha256`. */
export type KeyLine = Line<z.output<ReturnType<typeof lineSchema>>>;

/** Reads and checks the file. `nowMs`: a key that has expired by then is a fault. */
export function readKeysFile(content: Uint8Array, nowMs: number): ImportFile<KeyLine> {
  const { lines, items, faults } = readImportFile(content, {
    columns: ['customer', 'value', 'sha256', 'name', 'expires_at'],
    missingIn: missingColumn,
    schema: lineSchema(nowMs),
  });
  const repeated = repetitions(items, 'key', ({ value, sha256 }) =>
    value === undefined ? (sha256 ?? '') : sha256Hex(value),
  );
  return { lines, items, faults: inOrder([...faults, ...repeated]) };
}

function missingColumn(header: readonly string[]): string | undefined {
  if (!header.includes('customer')) return 'no column customer';
  if (header.includes('value') || header.includes('sha256')) return undefined;
  return 'neither a column value nor a column sha256';
}

/** The admin API's rules for each member, so that the API does not refuse a checked file halfway. */
function lineSchema(nowMs: number) {
  return z
    .strictObject({
      customer: NEW_CUSTOMER_ID,
      value: KEY_VALUE.optional(),
      sha256: KEY_SHA256.optional(),
      name: DISPLAY_NAME.optional(),
      expires_at: z
        .string()
        .transform((text) => readTime(text, nowMs, 'ahead') ?? text)
        .pipe(expiry(() => nowMs))
        .optional(),
    })
    .refine(({ value, sha256 }) => (value === undefined) !== (sha256 === undefined), {
      path: ['value, sha256'],
      message: 'exactly one of the two must be given',
    });
}
