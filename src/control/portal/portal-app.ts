/**
 * Builds the app of the portal listener. Order of the handlers: security headers, request log, Host check, and for each
 * route what its table says: page of the same origin or session, scope, body. The page is for the bare address, and for
 * every other path below /portal.
 */
import type { Express } from 'express';
import { routeOf } from '../../api/admin/route-table.ts';
import { PORTAL_ROUTES, type PortalEndpoint } from '../../api/portal/portal-routes.ts';
import { hostOf } from '../../formats/host.ts';
import { createStrictApp } from '../../http/listener/strict-app.ts';
import { BoundCookie } from '../../pages/bound-cookie.ts';
import { pagePaths, protectResponses, sitePages } from '../../pages/serve-pages.ts';
import { createChangeRecorder } from '../admin/audit.ts';
import { createErrorHandler } from '../frame/error-handler.ts';
import { checkHost, requestedHost } from '../frame/host-check.ts';
import { fromOwnPage } from '../frame/own-page.ts';
import { Refusal } from '../frame/refusal.ts';
import { recordRequests } from '../frame/request-log.ts';
import { noteRequest } from '../frame/response-locals.ts';
import { bindHandlers, createRouter } from '../frame/routes.ts';
import { ownFiles } from './own-files.ts';
import type { PortalContext, PortalDependencies } from './portal-context.ts';
import { portalHandlers } from './portal-handlers.ts';
import { createSessionAccess, type PortalCounters } from './session-access.ts';

/** `counters`: of the listener, whose app each reload replaces. */
export function createPortalApp(dependencies: PortalDependencies, counters: PortalCounters): Express {
  const app = createStrictApp();
  const context: PortalContext = { ...dependencies, recordChange: createChangeRecorder(dependencies) };
  const publicUrl = new URL(context.portal.publicUrl);
  const ownHost = hostOf(publicUrl);
  const cookie = new BoundCookie('tollgate_portal', publicUrl.protocol === 'https:' ? 'https' : 'http');
  const access = createSessionAccess(context, cookie, counters);
  const guardsOf = (endpoint: PortalEndpoint) => {
    if (endpoint === 'GET /portal/settings') return [];
    if (endpoint === 'POST /portal/session') return [fromOwnPage(cookie)];
    return [access.require(routeOf(PORTAL_ROUTES, endpoint).scope)];
  };
  const bound = bindHandlers(PORTAL_ROUTES, portalHandlers(context, cookie, access), context, guardsOf);
  const routes = { ...bound, ...ownFiles(context) };

  app.use(protectResponses);
  app.use(noteRequest([...Object.keys(routes), ...pagePaths('portal')], context.clientAddress));
  app.use(recordRequests(context, 'portal request'));
  app.use(checkHost(context, 'portal.public_url', (host) => requestedHost(host) === ownHost));
  app.use(createRouter(routes));
  app.use('/portal/v1', notFound);
  app.use(sitePages('portal', context.pageFiles));
  app.use(notFound);
  app.use(createErrorHandler(context.logger, { isForOperators: false }));
  return app;
}

function notFound(): never {
  throw new Refusal('not_found', 'The portal has no such path.');
}
