/** Changes of records, as both stores make them. */
import { isDeepStrictEqual } from 'node:util';
import type { StoreOp } from './observer.ts';
import {
  type CustomerRecord,
  customerFields,
  type EnforcedCustomer,
  type EnforcedKey,
  type Fields,
  type KeyRecord,
  keyFields,
} from './record-fields.ts';
import type { RecordStore, UpdateCheck } from './records.ts';

/** Returns the fields that change in the current record, or an error: then nothing changes. */
export type DecideChange<Current> = (current: Current) => Fields<string> | Error;

/**
 * Resolves to the resulting record, undefined when there is none, or to the error of `decide`. Calls `decide` again when
 * the record has changed before it is written.
 */
type ChangeRecord<Current, Result> = (
  op: StoreOp,
  id: string,
  decide: DecideChange<Current>,
) => Promise<Result | Error | undefined>;

export function recordChanges(
  changeCustomer: ChangeRecord<EnforcedCustomer, CustomerRecord>,
  changeKey: ChangeRecord<EnforcedKey, KeyRecord>,
): Pick<RecordStore, 'updateCustomer' | 'updateKey' | 'revokeKey' | 'retireKey' | 'noteKeyReset'> {
  return {
    updateCustomer: async (id, change, check) =>
      unlessRefused(await changeCustomer('update_customer', id, unlessObjected(customerFields(change), check))),

    updateKey: async (keyId, change, check) =>
      unlessRefused(await changeKey('update_key', keyId, unlessObjected(keyFields(change), check))),

    revokeKey: async (keyId, revokedAt) =>
      unlessRefused(
        await changeKey('revoke_key', keyId, (key) => (key.revokedAt === undefined ? { revoked_at: revokedAt } : {})),
      ),

    noteKeyReset: async (keyId, resetAt) =>
      unlessRefused(await changeKey('reset_usage', keyId, () => ({ usage_reset_at: resetAt }))),

    retireKey: async (keyId, expected, { replacedBy, expiresAt }) => {
      const copiedFrom = ({ expiresAt, scopes, allowedAddresses, requestsPerHour }: typeof expected) => {
        return [expiresAt, scopes, allowedAddresses, requestsPerHour];
      };
      const isExpected = (key: EnforcedKey) =>
        key.revokedAt === undefined &&
        key.replacedBy === undefined &&
        isDeepStrictEqual(copiedFrom(key), copiedFrom(expected));
      const changes = { replaced_by: replacedBy, expires_at: expiresAt };
      return unlessRefused(await changeKey('retire_key', keyId, (key) => (isExpected(key) ? changes : {})));
    },
  };
}

function unlessObjected<R>(changes: Fields<string>, check: UpdateCheck<R> | undefined): DecideChange<R> {
  return (current) => check?.(current) ?? changes;
}

/** Throws here, because the stores convert what is thrown within a call to StoreUnavailableError. */
function unlessRefused<R>(result: R | Error): R {
  if (result instanceof Error) throw result;
  return result;
}
