/** Lists notices that are not delivered yet, and sends one again. */
import type { NoticeDocument } from '../admin-api/responses.ts';
import { listUndelivered, retryNotice, type Undelivered } from '../notices/undelivered.ts';
import type { AdminContext } from './dependencies.ts';
import { pageDocument } from './documents.ts';
import { Refusal } from './refusal.ts';
import type { Handlers } from './routes.ts';

export function noticeHandlers({ notices, clock, recordChange }: AdminContext) {
  return {
    async 'GET /admin/v1/notices'({ query: { cursor, limit, state } }) {
      const page = await listUndelivered(notices, state, cursor, limit);
      return pageDocument(page.items.map(noticeDocument), page);
    },
    async 'POST /admin/v1/notices/:id/retry'({ id }, res) {
      const notice = await retryNotice(notices, id, clock.nowMs());
      if (notice === undefined) throw new Refusal('not_found', 'There is no undelivered notice with this id.');
      const { customer } = notice.stored;
      await recordChange(res, { action: 'notice.retry', customer, details: { notice: id } });
      return noticeDocument(notice);
    },
  } satisfies Partial<Handlers>;
}

function noticeDocument({ stored: { id, customer }, content }: Undelivered): NoticeDocument {
  return {
    id,
    type: content.type,
    customer,
    created_at: content.timestamp,
    deliveries: (content.deliveries ?? []).map(({ endpoint, state, attempts, nextAttemptMs, lastError }) => ({
      endpoint,
      state,
      attempts,
      next_attempt_at: state === 'pending' ? new Date(nextAttemptMs).toISOString() : null,
      last_error: lastError,
    })),
  };
}
