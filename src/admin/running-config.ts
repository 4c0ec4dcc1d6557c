import { Router } from 'express';
import { allowOnly } from './method-not-allowed.ts';
import type { AdminParts } from './parts.ts';

export function runningConfigRoute({ runningConfig }: AdminParts): Router {
  const router = Router({ caseSensitive: true, strict: true });
  router
    .route('/admin/v1/config')
    .get((_req, res) => {
      res.json(runningConfig());
    })
    .all(allowOnly('GET', 'HEAD'));
  return router;
}
