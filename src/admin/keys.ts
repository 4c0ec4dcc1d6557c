import { Router } from 'express';
import { z } from 'zod';
import { createApiKey, createKeyId, keyPrefix, sha256Hex } from '../keys/api-key.ts';
import type { KeyRecord } from '../store/store.ts';
import { DISPLAY_NAME, requireCustomer } from './customers.ts';
import { parseBody } from './json-body.ts';
import { allowOnly } from './method-not-allowed.ts';
import type { AdminParts } from './parts.ts';
import { Refusal } from './refusal.ts';

/** Whoever writes records directly may name keys as they like, within reason. */
const LONGEST_KEY_ID = 256;

export function keyRoutes({ records, clock, randomBytes, logger }: AdminParts): Router {
  const router = Router({ caseSensitive: true, strict: true });

  const newKey = z.strictObject({
    name: DISPLAY_NAME.optional(),
    expires_at: z.iso
      .datetime('must be an ISO 8601 time in UTC, such as 2030-01-31T00:00:00Z')
      .refine((time) => Date.parse(time) > clock.nowMs(), 'must be in the future')
      .transform((time) => new Date(time).toISOString())
      .optional(),
  });

  router
    .route('/admin/v1/customers/:id/keys')
    .post(async (req, res) => {
      const { name, expires_at: expiresAt } = parseBody(newKey, req.body);
      const customer = await requireCustomer(records, req.params.id);
      const key = createApiKey(randomBytes);
      const prefix = keyPrefix(key);
      const record: KeyRecord = {
        id: createKeyId(randomBytes),
        customer: customer.id,
        createdAt: now(),
        ...(prefix !== undefined && { prefix }),
        ...(name !== undefined && { name }),
        ...(expiresAt !== undefined && { expiresAt }),
      };
      if ((await records.createKey(sha256Hex(key), record)) === 'exists') {
        throw new Error('a new random key or key id was there already: is the source of randomness broken?');
      }
      logger.info({ customer: customer.id, key_id: record.id }, 'key created');
      const { revoked_at: _notYet, ...document } = keyDocument(record);
      res
        .status(201)
        .location(`/admin/v1/keys/${record.id}`)
        .json({ key, ...document });
    })
    .all(allowOnly('POST'));

  router
    .route('/admin/v1/keys/:keyId')
    .get(async (req, res) => {
      const id = possibleKeyId(req.params.keyId);
      res.json(keyDocument((await records.findKeyById(id)) ?? noSuchKey()));
    })
    .delete(async (req, res) => {
      const id = possibleKeyId(req.params.keyId);
      const { customer } = (await records.revokeKey(id, now())) ?? noSuchKey();
      logger.info({ customer, key_id: id }, 'key revoked');
      res.status(204).end();
    })
    .all(allowOnly('GET', 'HEAD', 'DELETE'));

  function now(): string {
    return new Date(clock.nowMs()).toISOString();
  }

  return router;
}

function possibleKeyId(id: string): string {
  return id.length <= LONGEST_KEY_ID ? id : noSuchKey();
}

function noSuchKey(): never {
  throw new Refusal('not_found', 'There is no key with this id.');
}

/** Never the key or its hash. Every member is always there; null is what is not set. */
function keyDocument(record: KeyRecord) {
  return {
    id: record.id,
    prefix: record.prefix ?? null,
    customer: record.customer,
    name: record.name ?? null,
    created_at: record.createdAt ?? null,
    expires_at: record.expiresAt ?? null,
    revoked_at: record.revokedAt ?? null,
  };
}
