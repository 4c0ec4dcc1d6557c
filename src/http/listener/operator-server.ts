import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { Clock } from '../../base/clock.ts';
import { sendProblem } from '../problems/document.ts';
import { createConnections } from './connections.ts';
import { holdBody, isBodyLate } from './held-body.ts';

/** Enough for Prometheus, probes, and a few dashboards and command lines. */
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
 * Creates the server of the ops or the admin listener. Connections are limited like those of the public listener. At
 * the limit, a new one evicts an idle one, or one whose unknown client does not send its body, so that neither keeps
 * probes and operators out.
 */
export function createOperatorServer(handle: RequestListener, clock: Clock, opened: AsyncDisposableStack): Server {
  const connections = createConnections({
    limits: { connections: CONNECTIONS, pipelined: PIPELINED, responseStallTimeoutMs: RESPONSE_STALL_TIMEOUT_MS },
    clock,
    mayDisplace: (req) => isBodyLate(req, clock.monotonicMs()),
    observer: { connection() {}, connectionClosed() {} },
  });
  opened.defer(() => connections.close());
  const server = createServer(TIMEOUTS);
  // Before the connection queues the request, which can wait for others.
  for (const event of ['request', 'checkContinue', 'checkExpectation']) {
    server.on(event, (req: IncomingMessage, res: ServerResponse) => holdBody(req, res, clock.monotonicMs()));
  }
  connections.serve(server, (req, res) => {
    if (connections.isSurplus(req.socket)) {
      res.shouldKeepAlive = false;
      sendProblem(res, {
        code: 'overloaded',
        detail: `All ${CONNECTIONS} connections of this listener are busy.`,
        headers: ['Retry-After', '1'],
      });
      return;
    }
    // With a listener for `checkContinue`, Node.js does not send 100 Continue itself.
    if (req.headers.expect?.toLowerCase() === '100-continue') res.writeContinue();
    handle(req, res);
  });
  return server;
}
