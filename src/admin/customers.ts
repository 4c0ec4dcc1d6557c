import type { CheckedRequestOf } from '../admin-api/routes.ts';
import { newWebhookSecret } from '../notices/webhook-signature.ts';
import type { CustomerChange, CustomerRecord, EnforcedCustomer, TemporaryLimit } from '../store/record-fields.ts';
import { changesNothing } from './audit.ts';
import { filteredCustomers } from './customer-filter.ts';
import type { AdminContext } from './dependencies.ts';
import { isoTime } from './document-of.ts';
import { definedMembers, limitMembers, pageOf, suspensionMembers } from './documents.ts';
import { noSuchCustomer, possibleCustomerId, Refusal, requireCustomer } from './refusal.ts';
import type { Handlers } from './routes.ts';

/** Notices are signed with both secrets for so long, so that the receiver can change to the new one. */
const FORMER_SECRET_MS = 24 * 3600 * 1000;

const UPDATE = 'PATCH /admin/v1/customers/:id';

/** Lists, creates, reads, changes and deletes customers. */
export function customerHandlers(context: AdminContext) {
  const { records, notifySecrets, currentPlan, effectiveLimit } = context;
  const { recordChange, randomBytes, clock, limitClock } = context;

  return {
    async 'GET /admin/v1/customers'({ query: { cursor, limit, ...filter } }) {
      const page = await filteredCustomers(filter, context)(cursor, limit);
      return pageOf(page.items.map(describe), page);
    },
    async 'POST /admin/v1/customers'({ body: { id, ...details } }, res) {
      const { name, plan, requests_per_hour: requestsPerHour, notify_url: notifyUrl } = details;
      const optional = definedMembers({ name, requestsPerHour, notifyUrl });
      const createdAt = isoTime(clock.nowMs());
      const customer: CustomerRecord = { id, plan, suspended: false, createdAt, ...optional };
      const problem = limitProblem(customer);
      if (problem) throw problem;
      if ((await records.createCustomer(customer)) === 'exists') {
        throw new Refusal('conflict', 'A customer with this id exists already.');
      }
      await recordChange(res, { action: 'customer.create', customer: id, details });
      res.location(`/admin/v1/customers/${id}`);
      return describe(customer);
    },
    async 'GET /admin/v1/customers/:id'({ id }) {
      return describe(await requireCustomer(records, id));
    },
    async [UPDATE]({ id, body: details }, res) {
      const { plan, name, requests_per_hour: requestsPerHour, temporary_limit, notify_url: notifyUrl } = details;
      const temporaryLimit = temporary_limit && {
        requestsPerHour: temporary_limit.requests_per_hour,
        untilMs: Date.parse(temporary_limit.until),
      };
      const suspension = suspensionOf(details);
      const change: CustomerChange = definedMembers({
        ...{ plan, name, requestsPerHour, temporaryLimit, notifyUrl },
        ...suspension,
      });
      const customer = await requireCustomer(records, id);
      // Checked only if the limit changes: a customer whose plan is no longer configured can still be suspended.
      const changesLimit = 'plan' in change || 'requestsPerHour' in change;
      let former: CustomerRecord = customer;
      const check = (current: EnforcedCustomer) => {
        former = { ...current, ...definedMembers({ name: customer.name, notifyUrl: customer.notifyUrl }) };
        return changesLimit ? limitProblem(withLimitOf(current, change)) : undefined;
      };
      if (changesNothing(customer, change) && !check(customer)) return describe(customer);

      const result = (await records.updateCustomer(customer.id, change, check)) ?? noSuchCustomer();
      await recordChange(res, { action: 'customer.update', customer: customer.id, details, before: valuesOf(former) });
      return describe(result);
    },
    async 'DELETE /admin/v1/customers/:id'({ id }, res) {
      const keys = (await records.deleteCustomer(possibleCustomerId(id))) ?? noSuchCustomer();
      await recordChange(res, { action: 'customer.delete', customer: id, details: { keys } });
    },
    async 'POST /admin/v1/customers/:id/notify-secret'(request, res) {
      const { id } = await requireCustomer(records, request.id);
      const secret = newWebhookSecret(randomBytes);
      const hadOne = (await notifySecrets.rotate(id, secret, FORMER_SECRET_MS)) ?? noSuchCustomer();
      const formerValidUntil = hadOne ? isoTime(clock.nowMs() + FORMER_SECRET_MS) : null;
      const details = { former_valid_until: formerValidUntil };
      await recordChange(res, { action: 'customer.notify_secret', customer: id, details });
      return { secret, formerValidUntil };
    },
  } satisfies Partial<Handlers>;

  function describe(customer: CustomerRecord) {
    const { requestsPerHour, temporaryLimit } = customer;
    const isTemporary = temporaryLimit !== undefined && limitClock.nowMs() < temporaryLimit.untilMs;
    return {
      ...customer,
      temporaryLimit: isTemporary ? { ...temporaryLimit, until: isoTime(temporaryLimit.untilMs) } : undefined,
      ...suspensionMembers(customer, limitClock),
      currentPlan: currentPlan(customer.plan),
      requestsPerHour: requestsPerHour === 'invalid' ? null : requestsPerHour,
      ...limitMembers(effectiveLimit(customer)),
    };
  }

  function limitProblem(customer: EnforcedCustomer): Refusal | undefined {
    const limit = effectiveLimit(customer);
    return limit.found ? undefined : new Refusal('unprocessable', limit.reason);
  }
}

/** Returns the members that can be changed, as named in the admin API. */
function valuesOf(customer: CustomerRecord) {
  const { plan, name, requestsPerHour, temporaryLimit, suspended, suspendedUntilMs, notifyUrl } = customer;
  return {
    plan,
    name,
    requests_per_hour: requestsPerHour === 'invalid' ? undefined : requestsPerHour,
    temporary_limit: limitDetail(temporaryLimit),
    suspended,
    suspended_until: isoTime(suspendedUntilMs),
    notify_url: notifyUrl,
  };
}

function limitDetail(limit: TemporaryLimit | undefined) {
  return limit && { requests_per_hour: limit.requestsPerHour, until: isoTime(limit.untilMs) };
}

/** A suspension without an end removes the end of an earlier one. */
function suspensionOf({ suspended, suspended_until: until }: CheckedRequestOf<typeof UPDATE>['body']) {
  if (until !== undefined) return { suspended: true, suspendedUntilMs: Date.parse(until) };
  return suspended === undefined ? {} : { suspended, suspendedUntilMs: null };
}

/** Applies the part of a change that affects the lasting limit: a customer must have one. */
function withLimitOf(customer: EnforcedCustomer, { plan, requestsPerHour }: CustomerChange): EnforcedCustomer {
  const { requestsPerHour: before, temporaryLimit: _, ...rest } = customer;
  const after = requestsPerHour === undefined ? before : (requestsPerHour ?? undefined);
  return { ...rest, ...definedMembers({ plan, requestsPerHour: after }) };
}
