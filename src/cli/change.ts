import { UsageError } from './exit-status.ts';

/** As `--name …` and `--no-name` leave it. */
export type Unsettable<Value> = Value | false;

/** As the admin API takes it in a PATCH: null unsets; undefined, which is no member of the JSON, leaves it as it is. */
export function unset<Value>(value: Unsettable<Value> | undefined): Value | null | undefined {
  return value === false ? null : value;
}

/** @throws UsageError for a change of nothing: some option was forgotten. */
export function requireSomeChange(change: Readonly<Record<string, unknown>>): void {
  if (Object.values(change).some((value) => value !== undefined)) return;
  throw new UsageError('nothing to change: name at least one option (--help shows what there is)');
}
