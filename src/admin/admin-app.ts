/**
 * Builds the app of the admin listener. Order of the handlers: no caching, request log, Host check, authentication,
 * body parsing, routes. Neither query nor body is parsed before the request is authenticated.
 */

import type { Express } from 'express';
import { createStrictApp } from '../listener/strict-app.ts';
import { auditRoutes, createChangeRecorder } from './audit.ts';
import { authorize } from './authorize.ts';
import { customerRoutes } from './customers.ts';
import type { AdminContext, AdminDependencies } from './dependencies.ts';
import { createErrorHandler } from './error-handler.ts';
import { checkHost } from './host-check.ts';
import { keyRoutes } from './keys.ts';
import { jsonBody } from './parse-request.ts';
import { Refusal } from './refusal.ts';
import { noteRequest } from './request-context.ts';
import { recordRequests } from './request-log.ts';
import { rotationRoutes } from './rotation.ts';
import { createRouter } from './routes.ts';
import { previewRoutes, runningConfigRoutes } from './running-config.ts';
import { statusRoutes } from './status.ts';
import { usageRoutes } from './usage.ts';
import { usageHistoryRoutes } from './usage-history.ts';

export function createAdminApp(dependencies: AdminDependencies): Express {
  const app = createStrictApp();
  const context: AdminContext = { ...dependencies, recordChange: createChangeRecorder(dependencies) };
  const preview = previewRoutes(context);
  const routes = {
    ...statusRoutes(context),
    ...runningConfigRoutes(context),
    ...customerRoutes(context),
    ...usageRoutes(context),
    ...usageHistoryRoutes(context),
    ...keyRoutes(context),
    ...rotationRoutes(context),
    ...auditRoutes(context),
  };

  app.use((_req, res, next) => {
    res.setHeader('Cache-Control', 'no-store');
    next();
  });
  app.use(noteRequest(Object.keys({ ...preview, ...routes })));
  app.use(recordRequests(context));
  app.use(checkHost(context));
  app.use(authorize(context));
  // Before jsonBody: a preview has a YAML body.
  app.use(createRouter(preview));
  app.use(jsonBody());
  app.use(createRouter(routes));
  app.use(() => {
    throw new Refusal('not_found', 'The admin API has no such path.');
  });
  app.use(createErrorHandler(context.logger));
  return app;
}
