/**
 * The admin listener, in order: no caching, the token, then the body and the calls. Nothing of a request is parsed
 * before its sender is known to be an administrator.
 */
import type { Express } from 'express';
import { createStrictApp } from '../strict-app.ts';
import { requireToken } from './authorize.ts';
import { customerRoutes } from './customers.ts';
import { createErrorHandler } from './error-handler.ts';
import { jsonBody } from './json-body.ts';
import { keyRoutes } from './keys.ts';
import type { AdminParts } from './parts.ts';
import { Refusal } from './refusal.ts';
import { statusRoute } from './status.ts';

export function createAdminApp(parts: AdminParts): Express {
  const app = createStrictApp();

  app.use((_req, res, next) => {
    res.setHeader('Cache-Control', 'no-store');
    next();
  });
  app.use(requireToken(parts.token));
  app.use(jsonBody());
  app.use(statusRoute(() => parts.status()));
  app.use(customerRoutes(parts));
  app.use(keyRoutes(parts));
  app.use(() => {
    throw new Refusal('not_found', 'The admin API has no such path.');
  });
  app.use(createErrorHandler(parts.logger));
  return app;
}
