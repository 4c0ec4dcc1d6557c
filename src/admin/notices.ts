/** Lists notices that are not delivered yet, and sends one again. */
import { findUndelivered, listUndelivered, retryNotice, type Undelivered } from '../notices/undelivered.ts';
import type { Page } from '../store/store.ts';
import type { AdminContext } from './dependencies.ts';
import { isoTime } from './document-of.ts';
import { pageOf, withCustomerName, withCustomerNames } from './documents.ts';
import { Refusal } from './refusal.ts';
import type { Handlers } from './routes.ts';

export function noticeHandlers({ notices, records, clock, recordChange }: AdminContext) {
  return {
    async 'GET /admin/v1/notices'({ query: { cursor, limit, state, id } }) {
      const page = await (id === undefined ? listUndelivered(notices, state, cursor, limit) : pageWith(id));
      return pageOf(await withCustomerNames(records, page.items.map(noticeMembers)), page);
    },
    async 'POST /admin/v1/notices/:id/retry'({ id }, res) {
      const notice = await retryNotice(notices, id, clock.nowMs());
      if (notice === undefined) throw new Refusal('not_found', 'There is no undelivered notice with this id.');
      const { customer } = notice.stored;
      await recordChange(res, { action: 'notice.retry', customer, details: { notice: id } });
      return withCustomerName(records, noticeMembers(notice));
    },
  } satisfies Partial<Handlers>;

  async function pageWith(id: string): Promise<Page<Undelivered>> {
    const notice = await findUndelivered(notices, id);
    return { items: notice ? [notice] : [], next: undefined };
  }
}

function noticeMembers({ stored: { id, customer }, content: { type, timestamp, deliveries = [] } }: Undelivered) {
  const delivered = deliveries.map(({ nextAttemptMs, ...delivery }) => {
    return { ...delivery, nextAttemptAt: delivery.state === 'pending' ? isoTime(nextAttemptMs) : null };
  });
  return { id, type, customer, createdAt: timestamp, deliveries: delivered };
}
