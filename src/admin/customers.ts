import { Router } from 'express';
import { z } from 'zod';
import { customerChange, newCustomer } from '../admin-api/requests.ts';
import { isCustomerId } from '../store/record-ids.ts';
import type { CustomerChange, CustomerRecord, EnforcedCustomer } from '../store/store.ts';
import { changesNothing, type RecordChange } from './changes.ts';
import { customerDocument } from './documents.ts';
import { parseBody } from './json-body.ts';
import { noSuchCustomer, possibleCustomerId, requireCustomer } from './lookups.ts';
import { allowOnly } from './method-not-allowed.ts';
import { PAGE_PARAMETERS, pageDocument } from './paging.ts';
import type { AdminParts } from './parts.ts';
import { parseQuery } from './query.ts';
import { Refusal } from './refusal.ts';

const CUSTOMERS_QUERY = z.strictObject({
  ...PAGE_PARAMETERS,
  /** The plan name in the record or its current name; plans that are no longer configured are allowed. */
  plan: z.string().min(1, 'must not be empty').optional(),
  suspended: z.enum(['true', 'false'], 'must be true or false').optional(),
  id_prefix: z.string().refine(isCustomerId, 'must be the beginning of a customer id').optional(),
});

export function customerRoutes(parts: AdminParts, recordChange: RecordChange): Router {
  const { records, currentPlan, effectiveLimit, planNames } = parts;
  const router = Router({ caseSensitive: true, strict: true });

  const creationSchema = newCustomer(planNames);
  const changeSchema = customerChange(planNames);

  router
    .route('/admin/v1/customers')
    .get(async (req, res) => {
      const { cursor, limit, ...filter } = parseQuery(CUSTOMERS_QUERY, req);
      const page = await records.listCustomers(cursor, limit);
      res.json(pageDocument(page.items.filter(filterBy(filter)).map(describe), page));
    })
    .post(async (req, res) => {
      const given = parseBody(creationSchema, req.body);
      const { id, name, plan, requests_per_hour: requestsPerHour } = given;
      const customer: CustomerRecord = {
        id,
        plan,
        suspended: false,
        ...(name !== undefined && { name }),
        ...(requestsPerHour !== undefined && { requestsPerHour }),
      };
      const problem = limitProblem(customer);
      if (problem) throw problem;
      if ((await records.createCustomer(customer)) === 'exists') {
        throw new Refusal('conflict', 'There is a customer with this id already.');
      }
      const { id: _namedApart, ...details } = given;
      await recordChange(res, { action: 'customer.create', customer: id, details });
      res.status(201).location(`/admin/v1/customers/${id}`).json(describe(customer));
    })
    .all(allowOnly('GET', 'HEAD', 'POST'));

  router
    .route('/admin/v1/customers/:id')
    .get(async (req, res) => {
      res.json(describe(await requireCustomer(records, req.params.id)));
    })
    .patch(async (req, res) => {
      const given = parseBody(changeSchema, req.body);
      const customer = await requireCustomer(records, req.params.id);
      const change = changeFrom(given);
      // Checked only if the limit changes: a customer whose plan is no longer configured can still be suspended.
      const changesLimit = 'plan' in given || 'requests_per_hour' in given;
      const check = (current: EnforcedCustomer) => (changesLimit ? limitProblem(changed(current, change)) : undefined);
      if (changesNothing(customer, change) && !check(customer)) return void res.json(describe(customer));

      const result = (await records.updateCustomer(customer.id, change, check)) ?? noSuchCustomer();
      await recordChange(res, { action: 'customer.update', customer: customer.id, details: given });
      res.json(describe(result));
    })
    .delete(async (req, res) => {
      const id = possibleCustomerId(req.params.id);
      const keys = (await records.deleteCustomer(id)) ?? noSuchCustomer();
      await recordChange(res, { action: 'customer.delete', customer: id, details: { keys } });
      res.status(204).end();
    })
    .all(allowOnly('GET', 'HEAD', 'PATCH', 'DELETE'));

  function filterBy({ plan, suspended, id_prefix: idPrefix = '' }: Omit<z.output<typeof CUSTOMERS_QUERY>, 'limit'>) {
    return (customer: CustomerRecord) =>
      customer.id.startsWith(idPrefix) &&
      (suspended === undefined || customer.suspended === (suspended === 'true')) &&
      (plan === undefined || plan === customer.plan || plan === currentPlan(customer.plan));
  }

  function describe(customer: CustomerRecord) {
    return customerDocument(customer, currentPlan(customer.plan), effectiveLimit(customer));
  }

  function limitProblem(customer: EnforcedCustomer): Refusal | undefined {
    const limit = effectiveLimit(customer);
    return limit.found ? undefined : new Refusal('unprocessable', limit.reason);
  }

  function changeFrom(given: z.output<typeof changeSchema>): CustomerChange {
    const { plan, name, requests_per_hour: requestsPerHour, suspended } = given;
    return {
      ...(plan !== undefined && { plan }),
      ...(name !== undefined && { name }),
      ...(requestsPerHour !== undefined && { requestsPerHour }),
      ...(suspended !== undefined && { suspended }),
    };
  }

  return router;
}

/** Applies the part of a change that affects the limit. */
function changed(customer: EnforcedCustomer, { plan, requestsPerHour }: CustomerChange): EnforcedCustomer {
  const { requestsPerHour: formerly, ...rest } = customer;
  const own = requestsPerHour === undefined ? formerly : requestsPerHour;
  return {
    ...rest,
    ...(plan !== undefined && { plan }),
    ...(own !== undefined && own !== null && { requestsPerHour: own }),
  };
}
