/** The usage of keys that have a limit under that of their customer: of one key, and its reset. */
import { type CeilingOfKey, ceilingOf, type KeyCeiling } from '../../customers/quota/key-ceiling.ts';
import type { KeyRecord } from '../../store/record-fields.ts';
import { hourly } from '../../store/windows.ts';
import { isoTime } from '../frame/document-of.ts';
import { noSuchKey, possibleCustomerId, Refusal, requireKey } from '../frame/refusal.ts';
import type { AdminContext, Handlers } from './dependencies.ts';

export function keyUsageHandlers(context: AdminContext) {
  const { records, clock, recordChange } = context;

  return {
    async 'GET /admin/v1/keys/:keyId/usage'({ keyId }) {
      const key = await requireKey(records, keyId);
      const ceiling = requireReadable(ceilingOf(key));
      return { ...(ceiling && (await usageOfKey(context, key, ceiling))), windowSeconds: 3600 };
    },
    async 'DELETE /admin/v1/keys/:keyId/usage'({ keyId }, res) {
      const key = await requireKey(records, keyId);
      const ceiling = requireReadable(ceilingOf(key));
      if (ceiling === undefined) throw new Refusal('unprocessable', 'The key has no limit of its own.');
      // The window first: what is noted in the record ends leases and remembered refusals by then.
      await records.resetKeyWindow(possibleCustomerId(key.customer), ceiling.limit.root);
      const { id, customer } = (await records.noteKeyReset(key.id, isoTime(clock.nowMs()))) ?? noSuchKey();
      await recordChange(res, { action: 'usage.reset', customer, keyId: id });
    },
  } satisfies Partial<Handlers>;
}

/** Resolves to the usage of a key. Rejects with StoreUnavailableError. */
export async function usageOfKey(
  { usage }: Pick<AdminContext, 'usage'>,
  { customer }: Pick<KeyRecord, 'customer'>,
  { limit }: KeyCeiling,
) {
  // The limit of the hour does not matter to that of the key.
  const { key } = await usage(possibleCustomerId(customer), [...hourly(1), limit]);
  return key;
}

function requireReadable(ceiling: CeilingOfKey): KeyCeiling | undefined {
  if (ceiling !== 'unreadable') return ceiling;
  throw new Refusal('unprocessable', 'The limit in the record of the key is unreadable, so its requests are refused.');
}
