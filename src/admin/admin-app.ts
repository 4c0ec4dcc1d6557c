/**
 * Builds the app of the admin listener. Order of the handlers: security headers, request log, Host check, the console's
 * login and page, authentication, routes with their bodies. Neither query nor body is parsed before the request is
 * authenticated, except the body of a login.
 */

import type { Express } from 'express';
import { consolePages, PAGE_PATHS } from '../console/pages.ts';
import { createStrictApp } from '../listener/strict-app.ts';
import { SECURITY_HEADERS } from '../problems/security-headers.ts';
import { auditHandlers, createChangeRecorder } from './audit.ts';
import { createGate } from './authorize.ts';
import { consoleSessionRoutes } from './console-session.ts';
import { customerHandlers } from './customers.ts';
import type { AdminContext, AdminDependencies } from './dependencies.ts';
import { createErrorHandler } from './error-handler.ts';
import { checkHost } from './host-check.ts';
import { keyHandlers } from './keys.ts';
import { noticeHandlers } from './notices.ts';
import { Refusal } from './refusal.ts';
import { recordRequests } from './request-log.ts';
import { noteRequest } from './response-locals.ts';
import { rotationHandlers } from './rotation.ts';
import { bindHandlers, createRouter, type Handlers } from './routes.ts';
import { runningConfigHandlers } from './running-config.ts';
import { statusHandlers } from './status.ts';
import { usageHandlers } from './usage.ts';
import { usageHistoryHandlers } from './usage-history.ts';

export function createAdminApp(dependencies: AdminDependencies): Express {
  const app = createStrictApp();
  const context: AdminContext = { ...dependencies, recordChange: createChangeRecorder(dependencies) };
  const gate = createGate(context);
  const session = consoleSessionRoutes(context, gate);
  const handlers: Handlers = {
    ...statusHandlers(context),
    ...runningConfigHandlers(context),
    ...customerHandlers(context),
    ...usageHandlers(context),
    ...usageHistoryHandlers(context),
    ...keyHandlers(context),
    ...rotationHandlers(context),
    ...noticeHandlers(context),
    ...auditHandlers(context),
  };
  const routes = bindHandlers(handlers, context);

  app.use((_req, res, next) => {
    res.setHeader('Cache-Control', 'no-store');
    for (const [name, value] of SECURITY_HEADERS) res.setHeader(name, value);
    next();
  });
  app.use(noteRequest([...Object.keys({ ...routes, ...session }), ...PAGE_PATHS]));
  app.use(recordRequests(context));
  app.use(checkHost(context));
  app.use(createRouter(session));
  app.use(consolePages(context.consoleFiles));
  app.use(gate.authorize);
  app.use(createRouter(routes));
  app.use(() => {
    throw new Refusal('not_found', 'The admin API has no such path.');
  });
  app.use(createErrorHandler(context.logger));
  return app;
}
