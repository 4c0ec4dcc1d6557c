import type { CheckedRequestOf } from '../../api/admin/routes.ts';
import { newWebhookSecret } from '../../formats/webhook-signature.ts';
import type { CustomerChange, CustomerRecord, EnforcedCustomer } from '../../store/record-fields.ts';
import { isoTime } from '../frame/document-of.ts';
import { noSuchCustomer, possibleCustomerId, Refusal, requireCustomer } from '../frame/refusal.ts';
import { changesNothing } from './audit.ts';
import type { AdminContext, Handlers } from './dependencies.ts';
import { definedMembers, limitMembers, pageOf, setMembers, suspensionMembers } from './documents.ts';
import { filteredCustomers } from './filtered-pages.ts';

/** Notices are signed with both secrets for so long, so that the receiver can change to the new one. */
const FORMER_SECRET_MS = 24 * 3600 * 1000;

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
      const members = setMembers(changeOf(details));
      const created = { id, plan: details.plan, suspended: false, createdAt: isoTime(clock.nowMs()) };
      const customer: CustomerRecord = { ...created, ...members };
      const problem = limitProblem(withLimitOf(created, members));
      if (problem) throw problem;
      if ((await records.createCustomer(customer)) === 'exists') {
        throw new Refusal('conflict', 'A customer with this id exists already.');
      }
      await recordChange(res, { action: 'customer.create', customer: id, details: members });
      res.location(`/admin/v1/customers/${id}`);
      return describe(customer);
    },
    async 'GET /admin/v1/customers/:id'({ id }) {
      return describe(await requireCustomer(records, id));
    },
    async 'PATCH /admin/v1/customers/:id'({ id, body }, res) {
      const change = changeOf(body);
      const customer = await requireCustomer(records, id);
      // Checked only if the limit changes: a customer whose plan is no longer configured can still be suspended.
      const changesLimit = 'plan' in change || 'requestsPerHour' in change || 'periodRequests' in change;
      let former: CustomerRecord = customer;
      const check = (current: EnforcedCustomer) => {
        former = { ...current, ...definedMembers({ name: customer.name, notifyUrl: customer.notifyUrl }) };
        return changesLimit ? limitProblem(withLimitOf(current, change)) : undefined;
      };
      if (changesNothing(customer, change) && !check(customer)) return describe(customer);

      const result = (await records.updateCustomer(customer.id, change, check)) ?? noSuchCustomer();
      const { suspendedUntilMs: untilMs, ...others } = change;
      const details = untilMs === null && former.suspendedUntilMs === undefined ? others : change;
      await recordChange(res, { action: 'customer.update', customer: customer.id, details, before: readable(former) });
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
      await recordChange(res, { action: 'customer.notify_secret', customer: id, details: { formerValidUntil } });
      return { secret, formerValidUntil };
    },
  } satisfies Partial<Handlers>;

  function describe(customer: CustomerRecord) {
    const { temporaryLimit, periodAnchorMs, ...readableMembers } = readable(customer);
    const isTemporary = temporaryLimit !== undefined && limitClock.nowMs() < temporaryLimit.untilMs;
    return {
      ...readableMembers,
      periodAnchor: isoTime(periodAnchorMs),
      temporaryLimit: isTemporary ? { ...temporaryLimit, until: isoTime(temporaryLimit.untilMs) } : undefined,
      ...suspensionMembers(customer, limitClock),
      currentPlan: currentPlan(customer.plan),
      ...limitMembers(effectiveLimit(customer)),
    };
  }

  function limitProblem(customer: EnforcedCustomer): Refusal | undefined {
    const limit = effectiveLimit(customer);
    return limit.found ? undefined : new Refusal('unprocessable', limit.reason);
  }
}

/** Returns the record without the values that another program wrote and nobody can read. */
function readable(customer: CustomerRecord) {
  const { requestsPerHour: limit, periodRequests, periodAnchorMs } = customer;
  return {
    ...customer,
    requestsPerHour: limit === 'invalid' ? null : limit,
    periodRequests: periodRequests === 'invalid' ? null : periodRequests,
    periodAnchorMs: periodAnchorMs === 'invalid' ? null : periodAnchorMs,
  };
}

type CustomerBody = CheckedRequestOf<'PATCH /admin/v1/customers/:id'>['body'];

/** A suspension without an end removes the end of an earlier one. */
function changeOf(details: CustomerBody) {
  const { periodAnchor, temporaryLimit: limit, suspended, suspendedUntil: until, notifyUrl, ...body } = details;
  const isSuspension = suspended !== undefined || until !== undefined;
  return definedMembers({
    ...body,
    periodAnchorMs: typeof periodAnchor === 'string' ? Date.parse(periodAnchor) : periodAnchor,
    temporaryLimit: limit && { requestsPerHour: limit.requests_per_hour, untilMs: Date.parse(limit.until) },
    ...(isSuspension && { suspended: suspended ?? true, suspendedUntilMs: until ? Date.parse(until) : null }),
    notifyUrl,
  });
}

/** Applies the part of a change that affects the lasting limit: a customer must have one. */
function withLimitOf(customer: EnforcedCustomer, change: CustomerChange): EnforcedCustomer {
  const { requestsPerHour: hour, periodRequests: period, temporaryLimit: _, ...rest } = customer;
  const { plan, requestsPerHour = hour, periodRequests = period } = change;
  return { ...rest, ...setMembers({ plan, requestsPerHour, periodRequests }) };
}
