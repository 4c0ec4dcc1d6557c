import { Router } from 'express';
import { usageDocument } from '../quota/usage.ts';
import type { RecordChange } from './changes.ts';
import { noSuchCustomer, possibleCustomerId, requireCustomer } from './lookups.ts';
import { allowOnly } from './method-not-allowed.ts';
import type { AdminParts } from './parts.ts';
import { Refusal } from './refusal.ts';

export function usageRoutes({ records, effectiveLimit, usage, clock }: AdminParts, recordChange: RecordChange): Router {
  const router = Router({ caseSensitive: true, strict: true });
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
