/** Changes a record only if it has not changed since the decision; otherwise reads it and decides again. */

import type { DecideChange } from '../../record-changes.ts';
import type { Fields } from '../../record-fields.ts';
import { StoreUnavailableError } from '../../store.ts';
import { named, type RedisClient } from '../connection/client.ts';

/** An attempt fails when another program changes the record between the read and the write. */
const MAX_ATTEMPTS = 20;

interface RecordUpdate<Checked extends string, Returned extends string, Current, Result> {
  /** The fields that are read for the decision, and must not change until the record is written. */
  readonly checked: readonly Checked[];
  /** Returns undefined when there is no such record. */
  readonly currentFrom: (fields: Fields<Checked>) => Current | undefined;
  readonly decide: DecideChange<Current, Fields<string>>;
  /** `recordFrom` receives the resulting values of these fields. */
  readonly returned: readonly Returned[];
  readonly recordFrom: (fields: Fields<Returned>) => Result | undefined;
}

/** Resolves to the resulting record, undefined when there is none, or to the error of `decide`. */
type UpdateRecord = <Checked extends string, Returned extends string, Current, Result>(
  name: string,
  update: RecordUpdate<Checked, Returned, Current, Result>,
) => Promise<Result | Error | undefined>;

/** Returns the update function. Must be called before the first command is sent, because it defines a command. */
export function checkedUpdates(redis: RedisClient): UpdateRecord {
  const writeIfUnchanged = redis.defineScript(new URL('./update-record.lua', import.meta.url), 1);
  return async (name, { checked, currentFrom, decide, returned, recordFrom }) => {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const fields = named(checked, await redis.hmget(name, ...checked));
      const current = currentFrom(fields);
      if (current === undefined) return undefined;
      const changes = decide(current);
      if (changes instanceof Error) return changes;
      const changed = fieldsAndValues(changes);
      const values = await writeIfUnchanged(
        name,
        checked.length,
        ...fieldsAndValues(fields),
        changed.length / 2,
        ...changed,
        ...returned,
      );
      if (values !== null) return recordFrom(named(returned, values));
    }
    throw new StoreUnavailableError(
      `the record changed during each of ${MAX_ATTEMPTS} attempts to update it: try again`,
    );
  };
}

/** An empty value means unset. */
function fieldsAndValues(fields: Fields<string>): string[] {
  return Object.entries(fields).flatMap(([field, value]) => [field, value ?? '']);
}
