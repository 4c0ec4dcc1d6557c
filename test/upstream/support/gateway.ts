import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { resetSocket } from '../../../src/base/reset-socket.ts';
import { FAILURE_PROBLEMS } from '../../../src/upstream/failures.ts';
import type { ForwardHandlers, ForwardOutcome, ForwardRequest } from '../../../src/upstream/forward-request.ts';
import { createForwarder, type Forwarder, type ForwarderOptions } from '../../../src/upstream/forwarder.ts';

/** As the edge does it, for connections that have no complete response before. */
function breakOff(res: ServerResponse): void {
  if (res.socket === null) res.once('socket', resetSocket);
  else resetSocket(res.socket);
}

function localUrl(port: number): URL {
  return new URL(`http://127.0.0.1:${port}`);
}

export interface Gateway {
  readonly port: number;
  readonly forwarder: Forwarder;
  /** The next outcome that was not asked for yet; rejects with what the forwarder rejects with. */
  nextOutcome(): Promise<ForwardOutcome>;
}

export interface GatewayOptions extends Partial<ForwarderOptions> {
  /** What one request is forwarded with, where it is not the default. */
  request?: (url: string) => Partial<ForwardRequest & Pick<ForwardHandlers<ForwardRequest>, 'responseLines'>>;
  beforeForwarding?: (req: IncomingMessage) => Promise<void>;
}

/** A server that does nothing but forward, to upstreams on this machine. Closed when the test ends. */
export async function startGateway(
  upstreamPort: number | readonly [number, ...number[]],
  options: GatewayOptions = {},
): Promise<Gateway> {
  const { request, beforeForwarding, ...forwarderOptions } = options;
  const [first, ...others] = typeof upstreamPort === 'number' ? [upstreamPort] : upstreamPort;
  const forwarder = createForwarder({
    urls: [localUrl(first), ...others.map(localUrl)],
    balance: 'round_robin',
    connectTimeoutMs: 5_000,
    responseTimeoutMs: 10_000,
    idleTimeoutMs: 15_000,
    totalTimeoutMs: 15_000,
    maxConnections: 8,
    maxConnectionsPerCustomer: forwarderOptions.maxConnections ?? 8,
    maxWaitingPerCustomer: () => 1_000,
    maxHeaderBytes: 16_384,
    ownHeaderNames: new Set(['x-request-id']),
    observer: { changed() {}, retry() {} },
    clock: systemClock,
    ...forwarderOptions,
  });
  const outcomes: Promise<ForwardOutcome>[] = [];
  const wanted: ((outcome: Promise<ForwardOutcome>) => void)[] = [];

  const server = createServer(async (req, res) => {
    const target = req.url ?? '';
    if (beforeForwarding) await beforeForwarding(req);
    const forwarded = new Promise<ForwardOutcome>((onOutcome, onBug) => {
      const { responseLines = () => '', ...given } = request?.(target) ?? {};
      forwarder.forward(
        {
          req,
          res,
          path: target,
          customer: 'acme',
          body: undefined,
          host: undefined,
          headers: '',
          beginDeadlineMs: systemClock.monotonicMs() + 10_000,
          beginDeadlineWallMs: Number.POSITIVE_INFINITY,
          ...given,
        },
        {
          responseLines,
          onOutcome: (_request, outcome) => onOutcome(outcome),
          onBug: (_request, error) => onBug(error),
        },
      );
    });
    const want = wanted.shift();
    if (want) want(forwarded);
    else outcomes.push(forwarded);
    forwarded.then(
      (outcome) => {
        if (outcome.kind !== 'failed') return;
        if (outcome.headSent) breakOff(res);
        else res.writeHead(599).end(`${FAILURE_PROBLEMS[outcome.failure]} ${outcome.failure}`);
      },
      () => {
        if (res.headersSent) breakOff(res);
        else res.writeHead(500).end();
      },
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await forwarder.close();
  });
  return {
    port: (server.address() as AddressInfo).port,
    forwarder,
    nextOutcome: () => outcomes.shift() ?? new Promise((resolve) => wanted.push(resolve)),
  };
}
