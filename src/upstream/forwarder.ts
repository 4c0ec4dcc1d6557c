import type { IncomingMessage, ServerResponse } from 'node:http';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { type Clock, type Scheduler, systemScheduler } from '../clock.ts';
import { type Lookup, lookupAddresses } from './addresses.ts';
import type { Balance } from './balancer.ts';
import { CallerWatch } from './caller-connection.ts';
import { type ConnectOptions, createConnect } from './connect.ts';
import { Deadlines } from './deadlines.ts';
import type { HealthCheckConfig } from './health-checks.ts';
import { type ForwardRequest, Relay, type RelayContext } from './relay.ts';
import type { UpstreamStatus } from './upstream.ts';
import { type UpstreamObserver, Upstreams } from './upstreams.ts';

export type { ForwardOutcome, ForwardRequest } from './relay.ts';

export interface ForwarderOptions {
  /** The upstreams' origins, each with an optional base path; none twice. */
  readonly urls: readonly [URL, ...URL[]];
  readonly balance: Balance;
  readonly healthCheck?: HealthCheckConfig | undefined;
  readonly connectTimeoutMs: number;
  /** From the request's begin to the head of the answer. */
  readonly responseTimeoutMs: number;
  /** From the call to the answer's last byte in the caller's hands. */
  readonly totalTimeoutMs: number;
  /** To each upstream; the same holds for the two below. */
  readonly maxConnections: number;
  /** What one customer has for sure, at most `maxConnections`. */
  readonly maxConnectionsPerCustomer: number;
  /** Requests of one customer that wait because it uses its share up. */
  readonly maxWaitingPerCustomer: number;
  /** Of the upstream's header fields. */
  readonly maxHeaderBytes: number;
  /** Fields of the answer, in lower case, that only the gateway gives: the upstream's own are dropped. */
  readonly ownAnswerNames: ReadonlySet<string>;
  /** As {@link createConnect} takes it. */
  readonly tls?: ConnectOptions['tls'];
  readonly observer: UpstreamObserver;
  /** Left out: by the system. */
  readonly lookup?: Lookup;
  /** For health checks, probes and lookups; left out: Node.js's timers. */
  readonly scheduler?: Scheduler;
  readonly clock: Clock;
}

export interface Forwarder {
  /**
   * Sends a GET or HEAD to the upstream and streams its answer into `res`; `request` hears of the end, which may come
   * before this returns. `req.url` is overwritten.
   */
  forward(req: IncomingMessage, res: ServerResponse, request: ForwardRequest): void;
  /** How each upstream is doing, in the order of the URLs. */
  status(): UpstreamStatus[];
  /** Resolves when the exchanges under way are over and the connections are closed; later requests are refused. */
  close(): Promise<void>;
}

/** Where a request carries its relay through the middleware. */
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
    if (relay === undefined) throw new Error('a request came without its relay');
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
