import { createServer, type RequestListener, type Server } from 'node:http';
import type { Clock } from './clock.ts';
import { createConnections } from './edge/connections.ts';
import { answerProblem } from './problems/answer.ts';

/** Prometheus, probes and a few dashboards and command lines. */
const CONNECTIONS = 256;
const PIPELINED = 16;
const RESPONSE_STALL_TIMEOUT_MS = 30_000;

const TIMEOUTS = {
  headersTimeout: 5000,
  requestTimeout: 30_000,
  keepAliveTimeout: 75_000,
  connectionsCheckingInterval: 1000,
};

/**
 * Creates the server of the ops or the admin listener. Its connections are limited as those of the public listener are:
 * at the limit a new connection displaces an idle one, so that idle connections keep no probe out.
 */
export function createOperatorServer(handle: RequestListener, clock: Clock, opened: AsyncDisposableStack): Server {
  const connections = createConnections({
    limits: { connections: CONNECTIONS, pipelined: PIPELINED, answerStallTimeoutMs: RESPONSE_STALL_TIMEOUT_MS },
    clock,
    observer: { connection() {}, connectionCut() {} },
  });
  opened.defer(() => connections.close());
  const server = createServer(TIMEOUTS);
  connections.serve(server, (req, res) => {
    if (connections.isSurplus(req.socket)) {
      res.shouldKeepAlive = false;
      answerProblem(res, {
        code: 'overloaded',
        detail: `All ${CONNECTIONS} connections of this listener are busy.`,
        headers: ['Retry-After', '1'],
      });
      return;
    }
    // Node.js sends it by itself only where nothing listens to `checkContinue`.
    if (req.headers.expect?.toLowerCase() === '100-continue') res.writeContinue();
    handle(req, res);
  });
  return server;
}
