import { Router } from 'express';
import { keyCreation } from '../admin-api/requests.ts';
import type { RecordChange } from './changes.ts';
import { keyDocument, newKeyDocument } from './documents.ts';
import { parseBody } from './json-body.ts';
import { noSuchCustomer, requireCustomer } from './lookups.ts';
import { allowOnly } from './method-not-allowed.ts';
import { type ExistingKey, importKey, issueKey } from './new-keys.ts';
import { PAGE_QUERY, pageDocument } from './paging.ts';
import type { AdminParts } from './parts.ts';
import { parseQuery } from './query.ts';

/** Routes that list, create and import the keys of one customer. */
export function customerKeyRoutes(parts: AdminParts, recordChange: RecordChange): Router {
  const { records, keyUses, clock } = parts;
  const router = Router({ caseSensitive: true, strict: true });

  const creationSchema = keyCreation(() => clock.nowMs());

  router
    .route('/admin/v1/customers/:id/keys')
    .get(async (req, res) => {
      const { cursor, limit } = parseQuery(PAGE_QUERY, req);
      const customer = await requireCustomer(records, req.params.id);
      const page = await records.listCustomerKeys(customer.id, cursor, limit);
      const lastUses = await keyUses.lastUses(page.items.map(({ id }) => id));
      const items = page.items.map((key, index) => keyDocument(key, lastUses[index]));
      res.json(pageDocument(items, page));
    })
    .post(async (req, res) => {
      const { value, sha256, ...details } = parseBody(creationSchema, req.body);
      const customer = await requireCustomer(records, req.params.id);
      const facts = { customer: customer.id, name: details.name, expiresAt: details.expires_at };
      const existing = existingKey(value, sha256);
      const { key, record } = existing
        ? { key: undefined, record: (await importKey(parts, existing, facts)) ?? noSuchCustomer() }
        : ((await issueKey(parts, facts)) ?? noSuchCustomer());
      const action = existing ? 'key.import' : 'key.create';
      await recordChange(res, { action, customer: customer.id, keyId: record.id, details });
      res
        .status(201)
        .location(`/admin/v1/keys/${record.id}`)
        .json({ ...(key !== undefined && { key }), ...newKeyDocument(record) });
    })
    .all(allowOnly('GET', 'HEAD', 'POST'));

  return router;
}

function existingKey(value: string | undefined, sha256: string | undefined): ExistingKey | undefined {
  if (value !== undefined) return { value };
  return sha256 === undefined ? undefined : { sha256 };
}
