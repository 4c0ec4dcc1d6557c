/**
 * Builds the app of the admin listener. Order of the handlers: no caching, request log, Host check, authentication,
 * body parsing, routes. Neither query nor body is parsed before the request is authenticated.
 */
import type { Express } from 'express';
import { createStrictApp } from '../listener/strict-app.ts';
import { auditRoute } from './audit.ts';
import { authorize } from './authorize.ts';
import { createChangeRecorder } from './changes.ts';
import { customerKeyRoutes } from './customer-keys.ts';
import { customerRoutes } from './customers.ts';
import { createErrorHandler } from './error-handler.ts';
import { explainRoute } from './explain.ts';
import { checkHost } from './host-check.ts';
import { jsonBody } from './json-body.ts';
import { keyRoutes } from './keys.ts';
import type { AdminParts } from './parts.ts';
import { notePeerAddress } from './peer-address.ts';
import { Refusal } from './refusal.ts';
import { noteRoute, recordRequests } from './request-log.ts';
import { rotationRoute } from './rotation.ts';
import { previewRoute, runningConfigRoutes } from './running-config.ts';
import { statusRoute } from './status.ts';
import { usageRoutes } from './usage.ts';

export function createAdminApp(parts: AdminParts): Express {
  const app = createStrictApp();
  const recordChange = createChangeRecorder(parts);
  const preview = previewRoute(parts, recordChange);
  const calls = [
    statusRoute(() => parts.status()),
    runningConfigRoutes(parts, recordChange),
    customerRoutes(parts, recordChange),
    usageRoutes(parts, recordChange),
    explainRoute(parts),
    customerKeyRoutes(parts, recordChange),
    keyRoutes(parts, recordChange),
    rotationRoute(parts, recordChange),
    auditRoute(parts),
  ];

  app.use((_req, res, next) => {
    res.setHeader('Cache-Control', 'no-store');
    next();
  });
  app.use(notePeerAddress());
  app.use(noteRoute([preview, ...calls]));
  app.use(recordRequests(parts));
  app.use(checkHost(parts));
  app.use(authorize(parts));
  app.use(preview);
  app.use(jsonBody());
  app.use(calls);
  app.use(() => {
    throw new Refusal('not_found', 'The admin API has no such path.');
  });
  app.use(createErrorHandler(parts.logger));
  return app;
}
