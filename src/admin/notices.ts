/** Routes that list notices that are not delivered yet, and send one again. */
import { z } from 'zod';
import { NOTICE_STATES, type NoticeDocument } from '../admin-api/responses.ts';
import { listUndelivered, retryNotice, type Undelivered } from '../notices/undelivered.ts';
import type { AdminContext } from './dependencies.ts';
import { pageDocument } from './documents.ts';
import { PAGE_PARAMETERS, parseQuery } from './parse-request.ts';
import { Refusal } from './refusal.ts';
import type { Routes } from './routes.ts';

const NOTICES_QUERY = z.strictObject({
  ...PAGE_PARAMETERS,
  state: z.enum(NOTICE_STATES, 'must be pending or dead').optional(),
});

export function noticeRoutes({ notices, clock, recordChange }: AdminContext): Routes {
  return {
    '/admin/v1/notices': {
      async get(req, res) {
        const { cursor, limit, state } = parseQuery(NOTICES_QUERY, req);
        const page = await listUndelivered(notices, state, cursor, limit);
        res.json(pageDocument(page.items.map(noticeDocument), page));
      },
    },
    '/admin/v1/notices/:id/retry': {
      async post(req, res) {
        const { id } = req.params;
        const notice = await retryNotice(notices, id, clock.nowMs());
        if (notice === undefined) throw new Refusal('not_found', 'There is no undelivered notice with this id.');
        const { customer } = notice.stored;
        await recordChange(res, { action: 'notice.retry', customer, details: { notice: id } });
        res.json(noticeDocument(notice));
      },
    },
  };
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
