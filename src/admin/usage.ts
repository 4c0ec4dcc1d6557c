import { Router } from 'express';
import { usageDocument } from '../quota/hourly-quota.ts';
import type { RecordChange } from './changes.ts';
import { customerUsageDocument } from './documents.ts';
import { noSuchCustomer, possibleCustomerId, requireCustomer } from './lookups.ts';
import { allowOnly } from './method-not-allowed.ts';
import { PAGE_QUERY, pageDocument } from './paging.ts';
import type { AdminParts } from './parts.ts';
import { parseQuery } from './query.ts';
import { Refusal } from './refusal.ts';

export function usageRoutes(parts: AdminParts, recordChange: RecordChange): Router {
  const { records, effectiveLimit, usage, usages, clock } = parts;
  const router = Router({ caseSensitive: true, strict: true });

  router
    .route('/admin/v1/usage')
    .get(async (req, res) => {
      const { cursor, limit } = parseQuery(PAGE_QUERY, req);
      const page = await records.listCustomers(cursor, limit);
      const used = await usages.usedOf(page.items.map(({ id }) => ({ customer: id, from: 0 })));
      const items = page.items.map((customer, index) =>
        customerUsageDocument(customer, effectiveLimit(customer), used[index] ?? 0),
      );
      res.json(pageDocument(items, page));
    })
    .all(allowOnly('GET', 'HEAD'));

  router
    .route('/admin/v1/customers/:id/usage')
    .get(async (req, res) => {
      const customer = await requireCustomer(records, req.params.id);
      const limit = effectiveLimit(customer);
      if (!limit.found) throw new Refusal('unprocessable', limit.reason);
      res.json(usageDocument(await usage(customer.id, limit.requestsPerHour)));
    })
    .delete(async (req, res) => {
      const id = possibleCustomerId(req.params.id);
      const resetAt = new Date(clock.nowMs()).toISOString();
      if ((await records.resetUsage(id, resetAt)) === undefined) noSuchCustomer();
      await recordChange(res, { action: 'usage.reset', customer: id });
      res.status(204).end();
    })
    .all(allowOnly('GET', 'HEAD', 'DELETE'));
  return router;
}
