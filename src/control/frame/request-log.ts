import type { RequestHandler } from 'express';
import type { Clock } from '../../base/clock.ts';
import { type Logger, loggerForAllLevels } from '../../observability/logger.ts';
import type { Metrics } from '../../observability/metrics.ts';
import { factsOf } from './response-locals.ts';

/**
 * Counts each request of the admin or portal listener. Logs each authenticated request, reads included, at any log level;
 * authorize.ts logs the others. Path, query and body are not logged: they may contain a key by mistake. Must be mounted
 * after noteRequest.
 */
export function recordRequests(
  {
    logger,
    metrics,
    clock,
  }: {
    readonly logger: Logger;
    readonly metrics: Pick<Metrics, 'adminRequest'>;
    readonly clock: Clock;
  },
  message: string,
): RequestHandler {
  return (req, res, next) => {
    const beganMs = clock.monotonicMs();
    res.once('close', () => {
      const { method } = req;
      const { route, actor, clientAddress } = factsOf(res);
      // Without a response, the client closed the connection first: 499, as on the public listener.
      const status = res.headersSent ? res.statusCode : 499;
      metrics.adminRequest(route, method, status);
      if (actor === undefined) return;
      const durationMs = Math.round((clock.monotonicMs() - beganMs) * 1000) / 1000;
      const facts = { method, route, status, actor: actor.name, client: clientAddress, duration_ms: durationMs };
      loggerForAllLevels(logger).info(facts, message);
    });
    next();
  };
}
