/**
 * The admin listener, in order: no caching, access, then the body and the calls. Nothing of a request is parsed
 * before its sender is known to be an administrator.
 */
import type { Express } from 'express';
import { createStrictApp } from '../strict-app.ts';
import { auditRoute } from './audit.ts';
import { authorize } from './authorize.ts';
import { createChangeRecorder } from './changes.ts';
import { customerKeyRoutes } from './customer-keys.ts';
import { customerRoutes } from './customers.ts';
import { createErrorHandler } from './error-handler.ts';
import { explainRoute } from './explain.ts';
import { jsonBody } from './json-body.ts';
import { keyRoutes } from './keys.ts';
import type { AdminParts } from './parts.ts';
import { notePeerAddress } from './peer-address.ts';
import { Refusal } from './refusal.ts';
import { rotationRoute } from './rotation.ts';
import { previewRoute, runningConfigRoutes } from './running-config.ts';
import { statusRoute } from './status.ts';
import { usageRoutes } from './usage.ts';

export function createAdminApp(parts: AdminParts): Express {
  const app = createStrictApp();
  const recordChange = createChangeRecorder(parts);

  app.use((_req, res, next) => {
    res.setHeader('Cache-Control', 'no-store');
    next();
  });
  app.use(notePeerAddress());
  app.use(authorize(parts));
  app.use(previewRoute(parts));
  app.use(jsonBody());
  app.use(statusRoute(() => parts.status()));
  app.use(runningConfigRoutes(parts, recordChange));
  app.use(customerRoutes(parts, recordChange));
  app.use(usageRoutes(parts, recordChange));
  app.use(explainRoute(parts));
  app.use(customerKeyRoutes(parts, recordChange));
  app.use(keyRoutes(parts, recordChange));
  app.use(rotationRoute(parts, recordChange));
  app.use(auditRoute(parts));
  app.use(() => {
    throw new Refusal('not_found', 'The admin API has no such path.');
  });
  app.use(createErrorHandler(parts.logger));
  return app;
}
