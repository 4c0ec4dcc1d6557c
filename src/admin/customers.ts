import { Router } from 'express';
import { z } from 'zod';
import { isCustomerId } from '../customer-id.ts';
import type { EffectiveLimit } from '../quota/limit.ts';
import { usageDocument } from '../quota/usage.ts';
import type { CustomerRecord } from '../store/store.ts';
import { parseBody } from './json-body.ts';
import { allowOnly } from './method-not-allowed.ts';
import type { AdminParts } from './parts.ts';
import { Refusal } from './refusal.ts';

const CONTROL_CHARACTER = /\p{Cc}/u;

export const DISPLAY_NAME = z
  .string()
  .min(1, 'must not be empty')
  .max(200, 'must have at most 200 characters')
  .refine((name) => !CONTROL_CHARACTER.test(name), 'must not have control characters');

const NEW_CUSTOMER = z.strictObject({
  id: z
    .string()
    .refine(isCustomerId, 'must be 1 to 128 letters, digits and . _ : @ -, beginning with a letter or digit'),
  name: DISPLAY_NAME.optional(),
  plan: z.string().min(1, 'must not be empty'),
  requests_per_hour: z.int('must be an integer').min(1, 'must be at least 1').optional(),
});

export function customerRoutes({ records, effectiveLimit, usage, logger, clock }: AdminParts): Router {
  const router = Router({ caseSensitive: true, strict: true });

  router
    .route('/admin/v1/customers')
    .post(async (req, res) => {
      const { id, name, plan, requests_per_hour: requestsPerHour } = parseBody(NEW_CUSTOMER, req.body);
      const customer: CustomerRecord = {
        id,
        plan,
        suspended: false,
        ...(name !== undefined && { name }),
        ...(requestsPerHour !== undefined && { requestsPerHour }),
      };
      const limit = effectiveLimit(customer);
      if (!limit.found) throw new Refusal('unprocessable', limit.reason);
      if ((await records.createCustomer(customer)) === 'exists') {
        throw new Refusal('conflict', `There is a customer "${id}" already.`);
      }
      logger.info({ customer: id, plan }, 'customer created');
      res.status(201).location(`/admin/v1/customers/${id}`).json(customerDocument(customer, limit));
    })
    .all(allowOnly('POST'));

  router
    .route('/admin/v1/customers/:id')
    .get(async (req, res) => {
      const customer = await findCustomer(req.params.id);
      res.json(customerDocument(customer, effectiveLimit(customer)));
    })
    .all(allowOnly('GET', 'HEAD'));

  router
    .route('/admin/v1/customers/:id/usage')
    .get(async (req, res) => {
      const customer = await findCustomer(req.params.id);
      const limit = effectiveLimit(customer);
      if (!limit.found) throw new Refusal('unprocessable', limit.reason);
      res.json(usageDocument(await usage(customer.id, limit.requestsPerHour)));
    })
    .delete(async (req, res) => {
      const { id } = await findCustomer(req.params.id);
      await records.resetUsage(id, new Date(clock.nowMs()).toISOString());
      logger.info({ customer: id }, 'usage reset');
      res.status(204).end();
    })
    .all(allowOnly('GET', 'HEAD', 'DELETE'));

  function findCustomer(id: string): Promise<CustomerRecord> {
    return requireCustomer(records, id);
  }

  return router;
}

/** @throws Refusal `not_found`, also for what can be no customer's id. */
export async function requireCustomer(
  records: Pick<AdminParts['records'], 'findCustomer'>,
  id: string,
): Promise<CustomerRecord> {
  const customer = isCustomerId(id) ? await records.findCustomer(id) : undefined;
  if (customer === undefined) throw new Refusal('not_found', 'There is no customer with this id.');
  return customer;
}

/** Every member is always there; null is what is not set. `limit_problem` says why there is no limit. */
function customerDocument(customer: CustomerRecord, limit: EffectiveLimit) {
  const { requestsPerHour } = customer;
  return {
    id: customer.id,
    name: customer.name ?? null,
    plan: customer.plan,
    requests_per_hour: typeof requestsPerHour === 'number' ? requestsPerHour : null,
    suspended: customer.suspended,
    usage_reset_at: customer.usageResetAt ?? null,
    limit: limit.found ? limit.requestsPerHour : null,
    limit_source: limit.found ? limit.source : null,
    limit_problem: limit.found ? null : limit.reason,
  };
}
