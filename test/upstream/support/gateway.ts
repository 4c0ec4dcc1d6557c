import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { systemClock, systemScheduler } from '../../../src/base/clock.ts';
import { resetSocket } from '../../../src/base/reset-socket.ts';
import { Backend, type BackendOptions } from '../../../src/upstream/backend.ts';
import { FAILURE_PROBLEMS } from '../../../src/upstream/failures.ts';
import type {
  Destination,
  ForwardHandlers,
  ForwardOutcome,
  ForwardRequest,
} from '../../../src/upstream/forward-request.ts';
import { createForwarder } from '../../../src/upstream/forwarder.ts';
import { lookupAddresses } from '../../../src/upstream/http1/addresses.ts';
import { type ConnectOptions, createConnect } from '../../../src/upstream/http1/connect.ts';

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
  readonly backend: Backend;
  /** The next outcome that was not asked for yet; rejects with what the forwarder rejects with. */
  nextOutcome(): Promise<ForwardOutcome>;
}

export interface GatewayOptions extends Partial<BackendOptions>, Partial<Omit<Destination, 'backend'>> {
  readonly connectTimeoutMs?: number;
  readonly tls?: ConnectOptions['tls'];
  readonly ownHeaderNames?: ReadonlySet<string>;
  /** What one request is forwarded with, where it is not the default. */
  request?: (url: string) => Partial<ForwardRequest & Pick<ForwardHandlers<ForwardRequest>, 'responseLines'>>;
  beforeForwarding?: (req: IncomingMessage) => Promise<void>;
}

/** A server that does nothing but forward, to upstreams on this machine. Closed when the test ends. */
export async function startGateway(
  upstreamPort: number | readonly [number, ...number[]],
  options: GatewayOptions = {},
): Promise<Gateway> {
  const { request, beforeForwarding, connectTimeoutMs = 5_000, tls, ...given } = options;
  const { clock = systemClock, ownHeaderNames = new Set(['x-request-id']) } = options;
  const ports = typeof upstreamPort === 'number' ? [upstreamPort] : upstreamPort;
  const backend = new Backend({
    backend: 'default',
    load: { inFlight: 0, latestAtMs: 0 },
    isWithinShare: () => true,
    urls: ports.map(localUrl),
    connectTo: (url, lookup) => createConnect(url, connectTimeoutMs, { lookup, tls }),
    lookup: lookupAddresses,
    scheduler: systemScheduler,
    balance: 'round_robin',
    maxConnections: 8,
    maxConnectionsPerCustomer: options.maxConnections ?? 8,
    maxWaitingPerCustomer: () => 1_000,
    maxHeaderBytes: 16_384,
    observer: { changed() {}, retry() {} },
    clock,
    ...given,
  });
  const destination = {
    responseTimeoutMs: 10_000,
    idleTimeoutMs: 15_000,
    totalTimeoutMs: 15_000,
    ...given,
    backend,
  };
  const forwarder = createForwarder({ ownHeaderNames, clock });
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
        destination,
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
    await backend.close();
  });
  return {
    port: (server.address() as AddressInfo).port,
    backend,
    nextOutcome: () => outcomes.shift() ?? new Promise((resolve) => wanted.push(resolve)),
  };
}
