/**
 * Builds the app of the admin listener. Order of the handlers: security headers, request log, Host check, the console's
 * login and page, authentication, routes with their bodies. Neither query nor body is parsed before the request is
 * authenticated, except the body of a login.
 */
import type { Express } from 'express';
import { ADMIN_ROUTES } from '../../api/admin/routes.ts';
import { createStrictApp } from '../../http/listener/strict-app.ts';
import { pagePaths, protectResponses, sitePages } from '../../pages/serve-pages.ts';
import { createErrorHandler } from '../frame/error-handler.ts';
import { checkHost, isOwnName } from '../frame/host-check.ts';
import { Refusal } from '../frame/refusal.ts';
import { recordRequests } from '../frame/request-log.ts';
import { noteRequest } from '../frame/response-locals.ts';
import { bindHandlers, createRouter } from '../frame/routes.ts';
import { auditHandlers, createChangeRecorder } from './audit.ts';
import { createAccessCounters, createGate } from './authorize.ts';
import { consoleSessionRoutes } from './console-session.ts';
import { customerHandlers } from './customers.ts';
import type { AdminContext, AdminDependencies, Handlers } from './dependencies.ts';
import { failedRequestHandlers } from './failed-requests.ts';
import { keyUsageHandlers } from './key-usage.ts';
import { keyHandlers } from './keys.ts';
import { maintenanceHandlers } from './maintenance.ts';
import { noticeHandlers } from './notices.ts';
import { portalAccessHandlers } from './portal-access.ts';
import { rotationHandlers } from './rotation.ts';
import { runningConfigHandlers } from './running-config.ts';
import { statusHandlers } from './status.ts';
import { usageHandlers } from './usage.ts';
import { usageHistoryHandlers } from './usage-history.ts';
import { usagePeriodHandlers } from './usage-periods.ts';

/** `counters`: of the listener, whose app each reload replaces. */
export function createAdminApp(
  dependencies: AdminDependencies,
  counters = createAccessCounters(dependencies.clock),
): Express {
  const app = createStrictApp();
  const context: AdminContext = { ...dependencies, recordChange: createChangeRecorder(dependencies) };
  const gate = createGate(context, counters);
  const session = consoleSessionRoutes(context, gate, counters);
  const handlers: Handlers = {
    ...statusHandlers(context),
    ...runningConfigHandlers(context),
    ...customerHandlers(context),
    ...usageHandlers(context),
    ...usageHistoryHandlers(context),
    ...usagePeriodHandlers(context),
    ...keyHandlers(context),
    ...keyUsageHandlers(context),
    ...rotationHandlers(context),
    ...portalAccessHandlers(context),
    ...noticeHandlers(context),
    ...failedRequestHandlers(context),
    ...maintenanceHandlers(context),
    ...auditHandlers(context),
  };
  const routes = bindHandlers(ADMIN_ROUTES, handlers, context);

  app.use(protectResponses);
  app.use(noteRequest([...Object.keys({ ...routes, ...session }), ...pagePaths('console')]));
  app.use(recordRequests(context, 'admin request'));
  app.use(checkHost(context, 'admin.allowed_hosts', (host, local) => isOwnName(host, local, context.names)));
  app.use(createRouter(session));
  app.use(sitePages('console', context.pageFiles));
  app.use(gate.authorize);
  app.use(createRouter(routes));
  app.use(() => {
    throw new Refusal('not_found', 'The admin API has no such path.');
  });
  app.use(createErrorHandler(context.logger, { isForOperators: true }));
  return app;
}
