import { Router } from 'express';
import { auditDocument } from './documents.ts';
import { allowOnly } from './method-not-allowed.ts';
import { PAGE_QUERY, pageDocument } from './paging.ts';
import type { AdminParts } from './parts.ts';
import { parseQuery } from './query.ts';

/** Who changed what, newest first; changes.ts writes it. */
export function auditRoute({ audit }: AdminParts): Router {
  const router = Router({ caseSensitive: true, strict: true });
  router
    .route('/admin/v1/audit')
    .get(async (req, res) => {
      const { cursor, limit } = parseQuery(PAGE_QUERY, req);
      const page = await audit.list(cursor, limit);
      const items = page.items.map((entry) => ({ id: entry.id, ...auditDocument(entry) }));
      res.json(pageDocument(items, page));
    })
    .all(allowOnly('GET', 'HEAD'));
  return router;
}
