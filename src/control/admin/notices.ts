/** Lists notices that are not delivered yet, sends one again, and tries the endpoints. */
import {
  findUndelivered,
  listUndelivered,
  retryNotice,
  type Undelivered,
} from '../../customers/notices/undelivered.ts';
import { isoTime } from '../frame/document-of.ts';
import { Refusal, requireCustomer } from '../frame/refusal.ts';
import type { AdminContext, Handlers } from './dependencies.ts';
import { pageOf, withCustomerName, withCustomerNames } from './documents.ts';
import { pageOfOne } from './filtered-pages.ts';

export function noticeHandlers({ notices, testNotices, records, clock, recordChange }: AdminContext) {
  return {
    async 'GET /admin/v1/notices'({ query: { cursor, limit, state, id } }) {
      const page =
        id === undefined
          ? await listUndelivered(notices, state, cursor, limit)
          : pageOfOne(await findUndelivered(notices, id));
      return pageOf(await withCustomerNames(records, page.items.map(noticeMembers)), page);
    },
    async 'POST /admin/v1/notices/test'({ query: { customer } }, res) {
      const record = customer === undefined ? undefined : await requireCustomer(records, customer);
      const results = await testNotices(record);
      if (results.length === 0) {
        const what = record ? 'The customer lacks a notify_url or its secret' : 'The configuration has no endpoints';
        throw new Refusal('unprocessable', `${what}, so there is nowhere to send a notice to.`);
      }
      await recordChange(res, { action: 'notice.test', ...(record && { customer: record.id }) });
      return { results };
    },
    async 'POST /admin/v1/notices/:id/retry'({ id }, res) {
      const notice = await retryNotice(notices, id, clock.nowMs());
      if (notice === undefined) throw new Refusal('not_found', 'There is no undelivered notice with this id.');
      const { customer } = notice.stored;
      await recordChange(res, { action: 'notice.retry', customer, details: { notice: id } });
      return withCustomerName(records, noticeMembers(notice));
    },
  } satisfies Partial<Handlers>;
}

function noticeMembers({ stored: { id, customer }, content: { type, timestamp, deliveries = [] } }: Undelivered) {
  const delivered = deliveries.map(({ nextAttemptMs, ...delivery }) => {
    return { ...delivery, nextAttemptAt: delivery.state === 'pending' ? isoTime(nextAttemptMs) : null };
  });
  return { id, type, customer, createdAt: timestamp, deliveries: delivered };
}
