/**
 * Rotates a key: the key gets a successor and keeps working until the grace period ends, but never beyond its expiry.
 * The successor is created first, so a failure halfway leaves the old key working or the new key in place. Both keys
 * belong to the customer and share its quota, and the window of their own limits.
 */
import { isUnreadable, keyState } from '../../customers/keys/key-state.ts';
import { rootOf } from '../../customers/quota/key-ceiling.ts';
import { expiryMsOf, type KeyRecord } from '../../store/record-fields.ts';
import type { KeyReplacement } from '../../store/records.ts';
import { isoTime } from '../frame/document-of.ts';
import { noSuchKey, Refusal, requireKey } from '../frame/refusal.ts';
import { issueKey } from './create-key.ts';
import type { AdminContext, Handlers } from './dependencies.ts';

/** `keepsEnd`: the successor ends when the key would have ended. Otherwise it has no end. */
export function rotationHandlers(context: AdminContext, { keepsEnd = false } = {}) {
  const { records, clock, logger } = context;

  return {
    async 'POST /admin/v1/keys/:keyId/rotate'({ keyId, body }, res) {
      const old = await requireKey(records, keyId);
      requireReplaceable(old, clock.nowMs());
      const { customer, name, scopes, allowedAddresses } = old;
      const facts = { customer, name, scopes, allowedAddresses, root: rootOf(old) };
      const requestsPerHour = old.requestsPerHour === 'invalid' ? undefined : old.requestsPerHour;
      const expiresAt = keepsEnd ? old.expiresAt : undefined;
      const successor = await issueKey(context, { ...facts, requestsPerHour, expiresAt });
      const { key, record } = successor ?? (await refuseWithoutCustomer(old.id));
      const graceEndsAt = endOfGrace(old, clock.nowMs() + body.graceSeconds * 1000);
      const details = { replacedBy: record.id, expiresAt: graceEndsAt };
      await retire(old, details);
      await context.recordChange(res, { action: 'key.rotate', customer: old.customer, keyId: old.id, details });
      res.location(`/admin/v1/keys/${record.id}`);
      return { key, ...record, replaces: old.id };
    },
  } satisfies Partial<Handlers>;

  async function refuseWithoutCustomer(keyId: string): Promise<never> {
    // The key was deleted with its customer (404), or its customer never existed (409).
    await requireKey(records, keyId);
    throw new Refusal('conflict', 'The customer of this key does not exist. Create the customer first.');
  }

  async function retire(old: KeyRecord, replacement: KeyReplacement): Promise<void> {
    const record = await tryToRetire(old, replacement);
    if (record?.replacedBy === replacement.replacedBy) return;
    await discard(replacement.replacedBy);
    requireReplaceable(record ?? noSuchKey(), clock.nowMs());
    throw new Refusal('conflict', 'The key was changed in the meantime. Read it, and rotate it again.');
  }

  async function tryToRetire(old: KeyRecord, replacement: KeyReplacement): Promise<KeyRecord | undefined> {
    try {
      return await records.retireKey(old.id, old, replacement);
    } catch (error) {
      // The old key may be retired nevertheless. So the new key is kept: otherwise no key might work after the grace period.
      const found = await records.findKeyById(old.id).catch(() => undefined);
      if (found?.replacedBy === replacement.replacedBy) return found;
      logger.warn(
        { key_id: old.id, new_key_id: replacement.replacedBy },
        'a rotation failed: if the old key is not replaced by the new one, revoke the new one, which nobody has',
      );
      throw error;
    }
  }

  async function discard(keyId: string): Promise<void> {
    try {
      await records.discardKey(keyId);
    } catch (error) {
      logger.warn({ err: error, key_id: keyId }, 'an unused key of a failed rotation cannot be deleted: revoke it');
    }
  }
}

/** Refuses keys that are replaced, revoked or expired. @throws Refusal `conflict` */
function requireReplaceable(key: KeyRecord, nowMs: number): void {
  if (key.replacedBy !== undefined) {
    throw new Refusal('conflict', `The key was already replaced by ${key.replacedBy}: rotate that one.`);
  }
  const state = keyState(key, nowMs);
  if (state === 'revoked') throw new Refusal('conflict', 'The key is revoked. Create a new one.');
  if (state === 'expired') throw new Refusal('conflict', 'The key has expired. Create a new one.');
  if (isUnreadable(key)) {
    throw new Refusal(
      'conflict',
      'The scopes, the allowed addresses or the limit of the key are unreadable. Set them, and rotate it then.',
    );
  }
}

function endOfGrace(key: KeyRecord, graceEndsMs: number): string {
  const ownEndMs = expiryMsOf(key);
  return isoTime(Math.min(graceEndsMs, ownEndMs ?? graceEndsMs));
}
