import { Router } from 'express';
import type { ExplanationDocument } from '../admin-api/responses.ts';
import type { RecentRefusal } from '../observability/recent-refusals.ts';
import { type Usage, usageDocument } from '../quota/hourly-quota.ts';
import { StoreUnavailableError } from '../store/store.ts';
import { limitDocument } from './documents.ts';
import { requireCustomer } from './lookups.ts';
import { allowOnly } from './method-not-allowed.ts';
import type { AdminParts } from './parts.ts';

/** Route that explains a customer's limit, or why there is none, with its usage and recent refusals. */
export function explainRoute(parts: AdminParts): Router {
  const { records, currentPlan, effectiveLimit, limitOrigin, usage, leaseState, refusals } = parts;
  const router = Router({ caseSensitive: true, strict: true });

  async function usageOf(customer: string, limit: number): Promise<Usage | undefined> {
    try {
      return await usage(customer, limit);
    } catch (error) {
      // The rest of the response is still useful.
      if (error instanceof StoreUnavailableError) return undefined;
      throw error;
    }
  }

  router
    .route('/admin/v1/customers/:id/explain')
    .get(async (req, res) => {
      const customer = await requireCustomer(records, req.params.id);
      const limit = effectiveLimit(customer);
      const used = limit.found ? await usageOf(customer.id, limit.requestsPerHour) : undefined;
      const [{ leases, refusedForMs }, refused] = await Promise.all([leaseState(customer.id), refusals(customer.id)]);
      const explanation: ExplanationDocument = {
        customer: customer.id,
        plan: customer.plan,
        current_plan: currentPlan(customer.plan) ?? null,
        suspended: customer.suspended,
        ...limitDocument(limit),
        origin: limitOrigin(customer, limit),
        usage: used === undefined ? null : usageDocument(used),
        instance: {
          leases: leases.map(({ units, endsInMs }) => ({ units, ends_in_seconds: inSeconds(endsInMs) })),
          refuses_for_seconds: refusedForMs === undefined ? null : inSeconds(refusedForMs),
          refusals: refused.map(refusalDocument),
        },
      };
      res.json(explanation);
    })
    .all(allowOnly('GET', 'HEAD'));
  return router;
}

/** Rounds to tenths. */
function inSeconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}

function refusalDocument({ code, count, firstAtMs, lastAtMs, keyId }: RecentRefusal) {
  return {
    code,
    count,
    first_at: new Date(firstAtMs).toISOString(),
    last_at: new Date(lastAtMs).toISOString(),
    key_id: keyId ?? null,
  };
}
