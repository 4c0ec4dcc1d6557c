import { Router } from 'express';
import { limitDocument } from './documents.ts';
import { requireCustomer } from './lookups.ts';
import { allowOnly } from './method-not-allowed.ts';
import type { AdminParts } from './parts.ts';

/** Why a customer has the limit that it has, or has none. */
export function explainRoute({ records, effectiveLimit, limitOrigin }: AdminParts): Router {
  const router = Router({ caseSensitive: true, strict: true });
  router
    .route('/admin/v1/customers/:id/explain')
    .get(async (req, res) => {
      const customer = await requireCustomer(records, req.params.id);
      const limit = effectiveLimit(customer);
      res.json({ customer: customer.id, ...limitDocument(limit), origin: limitOrigin(customer, limit) });
    })
    .all(allowOnly('GET', 'HEAD'));
  return router;
}
