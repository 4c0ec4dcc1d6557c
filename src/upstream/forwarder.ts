import type { IncomingMessage, ServerResponse } from 'node:http';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { type Clock, type Scheduler, systemScheduler } from '../base/clock.ts';
import type { Balance } from './balancer.ts';
import { CallerWatch } from './client-connection.ts';
import { Deadlines } from './deadlines.ts';
import type { HealthCheckConfig } from './health/health-checks.ts';
import { type Lookup, lookupAddresses } from './http1/addresses.ts';
import { type ConnectOptions, createConnect } from './http1/connect.ts';
import { type ForwardRequest, Relay, type RelayContext } from './relay.ts';
import type { UpstreamStatus } from './upstream.ts';
import { type UpstreamObserver, Upstreams } from './upstreams.ts';

export type { ForwardOutcome, ForwardRequest } from './relay.ts';

export interface ForwarderOptions {
  /** Origins of the upstreams, each with an optional base path; without duplicates. */
  readonly urls: readonly [URL, ...URL[]];
  readonly balance: Balance;
  readonly healthCheck?: HealthCheckConfig | undefined;
  readonly connectTimeoutMs: number;
  /** From the first byte of the request to the head of the response. */
  readonly responseTimeoutMs: number;
  /** From the call to the last byte of the response that the client has taken. */
  readonly totalTimeoutMs: number;
  /** Per upstream, like the next two. */
  readonly maxConnections: number;
  /** Connections that one customer may always use; at most `maxConnections`. */
  readonly maxConnectionsPerCustomer: number;
  /** Requests of one customer that may wait once it uses all of its share. */
  readonly maxWaitingPerCustomer: number;
  /** Limit for the header fields of a response. */
  readonly maxHeaderBytes: number;
  /** Response header names, in lower case, that only the gateway sets; the upstream's are dropped. */
  readonly ownAnswerNames: ReadonlySet<string>;
  /** See {@link createConnect}. */
  readonly tls?: ConnectOptions['tls'];
  readonly observer: UpstreamObserver;
  /** Default: the system's resolver. */
  readonly lookup?: Lookup;
  /** For health checks, probes and lookups. Default: Node.js's timers. */
  readonly scheduler?: Scheduler;
  readonly clock: Clock;
}

export interface Forwarder {
  /**
   * Sends a GET or HEAD to an upstream and streams the response into `res`. Calls `request.settled` or `request.broken` once
   * at the end, which can be before this returns. Clears `req.url`.
   */
  forward(req: IncomingMessage, res: ServerResponse, request: ForwardRequest): void;
  /** Returns the status of each upstream, in the order of the URLs. */
  status(): UpstreamStatus[];
  /** Resolves when all requests have ended and the connections are closed. Later requests fail. */
  close(): Promise<void>;
}

/** Property of a request that holds its relay: the middleware passes on only the request and the response. */
const RELAY = Symbol('relay');

export function createForwarder(options: ForwarderOptions): Forwarder {
  const { urls, responseTimeoutMs, totalTimeoutMs, ownAnswerNames, clock } = options;
  const upstreams = new Upstreams({
    ...options,
    connectTo: (url, lookup) => createConnect(url, options.connectTimeoutMs, { lookup, tls: options.tls }),
    lookup: options.lookup ?? lookupAddresses,
    scheduler: options.scheduler ?? systemScheduler,
  });
  const context: RelayContext = {
    upstreams,
    deadlines: new Deadlines(clock),
    callers: new CallerWatch(),
    ownAnswerNames,
    responseTimeoutMs,
    totalTimeoutMs,
    clock,
  };

  function relayOf(req: IncomingMessage & { [RELAY]?: Relay }): Relay {
    const relay = req[RELAY];
    if (relay === undefined) throw new Error('a request has no relay');
    return relay;
  }

  const middleware = createProxyMiddleware({
    target: urls[0], // required, and not used: the relay chooses among all upstreams
    pathFilter: () => true,
    // The default plugins would add their own handling of errors, logs and responses.
    ejectPlugins: true,
    plugins: [
      (proxy) => {
        // Replaces the library's transport; docs/decisions/0009-what-the-chosen-libraries-do.md says why.
        proxy.web = async (req) => relayOf(req).start();
        proxy.on('error', () => {}); // `next` gets the error, too; without a listener the event would throw
      },
    ],
  });

  let closing: Promise<void> | undefined;
  return {
    forward(req: IncomingMessage & { [RELAY]?: Relay }, res, request) {
      const relay = new Relay(req, res, request, context);
      req[RELAY] = relay;
      // The middleware parses `req.url` unless it is empty. It must not parse what the client sent.
      req.url = '';
      const giveUp = (error: unknown) => relay.giveUp(error ?? new Error('the proxy middleware declined a request'));
      middleware(req, res, giveUp).catch(giveUp);
    },
    close() {
      closing ??= upstreams.close();
      return closing;
    },
    status: () => upstreams.status(),
  };
}
