import { Router } from 'express';
import { z } from 'zod';
import { auditDocument } from './documents.ts';
import { allowOnly } from './method-not-allowed.ts';
import { PAGE_PARAMETERS, pageDocument } from './paging.ts';
import type { AdminParts } from './parts.ts';
import { parseQuery } from './query.ts';

const TIME = z.iso
  .datetime({ error: 'must be an ISO 8601 time in UTC, such as 2026-01-31T00:00:00Z' })
  .transform((time) => Date.parse(time))
  .optional();
const AUDIT_QUERY = z.strictObject({ ...PAGE_PARAMETERS, from: TIME, to: TIME });

/** Route that lists the audit log, newest entries first; changes.ts writes it. */
export function auditRoute({ audit }: AdminParts): Router {
  const router = Router({ caseSensitive: true, strict: true });
  router
    .route('/admin/v1/audit')
    .get(async (req, res) => {
      const { cursor, limit, from, to } = parseQuery(AUDIT_QUERY, req);
      const page = await audit.list(cursor, limit, { fromMs: from, toMs: to });
      const items = page.items.map((entry) => ({ id: entry.id, ...auditDocument(entry) }));
      res.json(pageDocument(items, page));
    })
    .all(allowOnly('GET', 'HEAD'));
  return router;
}
