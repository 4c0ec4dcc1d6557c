import type { RequestHandler, Router } from 'express';
import type { Clock } from '../base/clock.ts';
import { type Logger, loggerForAllLevels } from '../observability/logger.ts';
import type { Metrics } from '../observability/metrics.ts';
import { knownActorOf } from './actor.ts';
import { peerAddressOf } from './peer-address.ts';

interface RequestLogParts {
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'adminRequest'>;
  readonly clock: Clock;
}

/**
 * Counts each request of the admin listener. Logs each authenticated request, reads included, at any log level;
 * authorize.ts logs the others. Path, query and body are not logged: they may contain a key by mistake. Must be mounted
 * after notePeerAddress.
 */
export function recordRequests({ logger, metrics, clock }: RequestLogParts): RequestHandler {
  return (req, res, next) => {
    const beganMs = clock.monotonicMs();
    res.once('close', () => {
      const { method } = req;
      const route = routeOf(res.locals);
      // Without a response, the client closed the connection first: 499, as on the public listener.
      const status = res.headersSent ? res.statusCode : 499;
      metrics.adminRequest(route, method, status);
      const actor = knownActorOf(res)?.name;
      if (actor === undefined) return;
      const durationMs = Math.round((clock.monotonicMs() - beganMs) * 1000) / 1000;
      const facts = { method, route, status, actor, client: peerAddressOf(res), duration_ms: durationMs };
      loggerForAllLevels(logger).info(facts, 'admin request');
    });
    next();
  };
}

interface RoutePattern {
  readonly template: string;
  readonly pattern: RegExp;
}

/** Stores the path template before authentication, so that logs and metrics of refused requests have it. */
export function noteRoute(routers: readonly Router[]): RequestHandler {
  const templates = routers.flatMap(({ stack }) => stack.flatMap(({ route }) => route?.path ?? []));
  const patterns = templates.map(
    (path): RoutePattern => ({
      template: path.replace(/:(\w+)/g, '{$1}'),
      pattern: new RegExp(`^${path.replace(/:\w+/g, '[^/]+')}$`),
    }),
  );
  return (req, res, next) => {
    res.locals.route = patterns.find(({ pattern }) => pattern.test(req.path))?.template;
    next();
  };
}

/** Returns the template of the request's path; `none` if the admin API has no such path. */
export function routeOf(locals: { readonly route?: string }): string {
  return locals.route ?? 'none';
}
