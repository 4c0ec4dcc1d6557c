import { UsageError } from './exit-status.ts';

/** The value of an option: `--name …` sets it, `--no-name` makes it false. */
export type Unsettable<Value> = Value | false;

/** Converts an option for a PATCH: null unsets the member; undefined is omitted from the JSON and changes nothing. */
export function unset<Value>(value: Unsettable<Value> | undefined): Value | null | undefined {
  return value === false ? null : value;
}

/** @throws UsageError if no option changes anything. */
export function requireSomeChange(change: Readonly<Record<string, unknown>>): void {
  if (Object.values(change).some((value) => value !== undefined)) return;
  throw new UsageError('nothing to change: name at least one option (--help shows what there is)');
}
