import { z } from 'zod';
import { customerChange, newCustomer } from '../admin-api/requests.ts';
import type { NotifySecretDocument } from '../admin-api/responses.ts';
import { newWebhookSecret } from '../notices/webhook-signature.ts';
import type { CustomerSearch } from '../store/customer-search.ts';
import {
  type CustomerChange,
  type CustomerRecord,
  type EnforcedCustomer,
  isCustomerId,
} from '../store/record-fields.ts';
import { changesNothing } from './audit.ts';
import type { AdminContext } from './dependencies.ts';
import { customerDocument, definedMembers, pageDocument } from './documents.ts';
import { type ReadPage, readOn } from './filtered-pages.ts';
import { PAGE_PARAMETERS, parseBody, parseQuery } from './parse-request.ts';
import { noSuchCustomer, possibleCustomerId, Refusal, requireCustomer } from './refusal.ts';
import type { Routes } from './routes.ts';

/** Notices are signed with both secrets for so long, so that the receiver can change to the new one. */
const FORMER_SECRET_MS = 24 * 3600 * 1000;

const CUSTOMERS_QUERY = z.strictObject({
  ...PAGE_PARAMETERS,
  /** The plan name in the record or its current name; plans that are no longer configured are allowed. */
  plan: z.string().min(1, 'must not be empty').optional(),
  suspended: z.enum(['true', 'false'], 'must be true or false').optional(),
  id_prefix: z.string().refine(isCustomerId, 'must be the beginning of a customer id').optional(),
  search: z.string().min(1, 'must not be empty').max(200, 'must have at most 200 characters').optional(),
});

/** Routes that list, create, read, change and delete customers. */
export function customerRoutes(context: AdminContext): Routes {
  const { records, notifySecrets, currentPlan, planNamesOf, effectiveLimit, planNames } = context;
  const { recordChange, randomBytes, clock } = context;
  const creationSchema = newCustomer(planNames);
  const changeSchema = customerChange(planNames);

  return {
    '/admin/v1/customers': {
      async get(req, res) {
        const { cursor, limit, ...filter } = parseQuery(CUSTOMERS_QUERY, req);
        const read = filteredBy(filter);
        const page = await read(cursor, limit);
        res.json(pageDocument(page.items.map(describe), page));
      },
      async post(req, res) {
        const { id, ...details } = parseBody(creationSchema, req.body);
        const { name, plan, requests_per_hour: requestsPerHour, notify_url: notifyUrl } = details;
        const optional = definedMembers({ name, requestsPerHour, notifyUrl });
        const createdAt = new Date(clock.nowMs()).toISOString();
        const customer: CustomerRecord = { id, plan, suspended: false, createdAt, ...optional };
        const problem = limitProblem(customer);
        if (problem) throw problem;
        if ((await records.createCustomer(customer)) === 'exists') {
          throw new Refusal('conflict', 'A customer with this id exists already.');
        }
        await recordChange(res, { action: 'customer.create', customer: id, details });
        res.status(201).location(`/admin/v1/customers/${id}`).json(describe(customer));
      },
    },
    '/admin/v1/customers/:id': {
      async get(req, res) {
        res.json(describe(await requireCustomer(records, req.params.id)));
      },
      async patch(req, res) {
        const details = parseBody(changeSchema, req.body);
        const { plan, name, requests_per_hour: requestsPerHour, suspended, notify_url: notifyUrl } = details;
        const change: CustomerChange = definedMembers({ plan, name, requestsPerHour, suspended, notifyUrl });
        const customer = await requireCustomer(records, req.params.id);
        // Checked only if the limit changes: a customer whose plan is no longer configured can still be suspended.
        const changesLimit = 'plan' in change || 'requestsPerHour' in change;
        const check = (current: EnforcedCustomer) =>
          changesLimit ? limitProblem(withLimitOf(current, change)) : undefined;
        if (changesNothing(customer, change) && !check(customer)) return void res.json(describe(customer));

        const result = (await records.updateCustomer(customer.id, change, check)) ?? noSuchCustomer();
        await recordChange(res, { action: 'customer.update', customer: customer.id, details });
        res.json(describe(result));
      },
      async delete(req, res) {
        const id = possibleCustomerId(req.params.id);
        const keys = (await records.deleteCustomer(id)) ?? noSuchCustomer();
        await recordChange(res, { action: 'customer.delete', customer: id, details: { keys } });
        res.status(204).end();
      },
    },
    '/admin/v1/customers/:id/notify-secret': {
      async post(req, res) {
        const { id } = await requireCustomer(records, req.params.id);
        const secret = newWebhookSecret(randomBytes);
        const hadOne = (await notifySecrets.rotate(id, secret, FORMER_SECRET_MS)) ?? noSuchCustomer();
        const formerValidUntil = hadOne ? new Date(clock.nowMs() + FORMER_SECRET_MS).toISOString() : null;
        const details = { former_valid_until: formerValidUntil };
        await recordChange(res, { action: 'customer.notify_secret', customer: id, details });
        const document: NotifySecretDocument = { secret, ...details };
        res.status(201).json(document);
      },
    },
  };

  function filteredBy(filter: Omit<z.output<typeof CUSTOMERS_QUERY>, 'limit'>): ReadPage<CustomerRecord> {
    if (Object.values(filter).every((value) => value === undefined)) return records.listCustomers;
    const { plan, suspended, id_prefix: idPrefix = '', search } = filter;
    const beginning = search ?? filter.id_prefix;
    const wanted: CustomerSearch = definedMembers({
      beginning,
      suspended: suspended === undefined ? undefined : suspended === 'true',
      plans: plan === undefined ? undefined : planNamesOf(plan),
    });
    return readOn(async (cursor, limit) => {
      const { items, next } = await records.findCustomers(wanted, cursor, limit);
      return { items: items.filter(({ id }) => id.startsWith(idPrefix)), next };
    });
  }

  function describe(customer: CustomerRecord) {
    return customerDocument(customer, currentPlan(customer.plan), effectiveLimit(customer));
  }

  function limitProblem(customer: EnforcedCustomer): Refusal | undefined {
    const limit = effectiveLimit(customer);
    return limit.found ? undefined : new Refusal('unprocessable', limit.reason);
  }
}

/** Applies the part of a change that affects the limit. */
function withLimitOf(customer: EnforcedCustomer, { plan, requestsPerHour }: CustomerChange): EnforcedCustomer {
  const { requestsPerHour: before, ...rest } = customer;
  const after = requestsPerHour === undefined ? before : (requestsPerHour ?? undefined);
  return { ...rest, ...definedMembers({ plan, requestsPerHour: after }) };
}
