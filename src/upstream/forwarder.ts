import type { IncomingMessage } from 'node:http';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { systemScheduler } from '../base/clock.ts';
import { Backend, type BackendOptions } from './backend.ts';
import { Deadlines } from './deadlines.ts';
import type { ForwardHandlers, ForwardRequest } from './forward-request.ts';
import { lookupAddresses } from './http1/addresses.ts';
import { type ConnectOptions, createConnect } from './http1/connect.ts';
import { Relay, type RelayParts } from './relay.ts';
import { type BodyLimits, RequestBody } from './request-body.ts';
import { createResponseFilter } from './response-headers.ts';

export interface ForwarderOptions
  extends Omit<BackendOptions, 'connectTo' | 'lookup' | 'scheduler'>,
    Pick<RelayParts, 'responseTimeoutMs' | 'idleTimeoutMs' | 'totalTimeoutMs'> {
  readonly connectTimeoutMs: number;
  /** Response header names, in lower case, that only the gateway sets; the upstream's are dropped. */
  readonly ownHeaderNames: ReadonlySet<string>;
  /** See {@link createConnect}. */
  readonly tls?: ConnectOptions['tls'];
  /** Default: the system's resolver. */
  readonly lookup?: BackendOptions['lookup'];
  /** For health checks, probes and lookups. Default: Node.js's timers. */
  readonly scheduler?: BackendOptions['scheduler'];
}

export type Forwarder = ReturnType<typeof createForwarder>;

/** Property of a request that holds its relay: the middleware passes on only the request and the response. */
const RELAY = Symbol('relay');
type RelayedRequest = IncomingMessage & { [RELAY]?: Relay };
const STARTED = Promise.resolve();

export function createForwarder(options: ForwarderOptions) {
  const { responseTimeoutMs, idleTimeoutMs, totalTimeoutMs, ownHeaderNames, clock } = options;
  const backend = new Backend({
    ...options,
    connectTo: (url, lookup) => createConnect(url, options.connectTimeoutMs, { lookup, tls: options.tls }),
    lookup: options.lookup ?? lookupAddresses,
    scheduler: options.scheduler ?? systemScheduler,
  });
  const deadlines = new Deadlines(clock);
  const parts: RelayParts = {
    backend,
    deadlines,
    passedLines: createResponseFilter(ownHeaderNames),
    responseTimeoutMs,
    idleTimeoutMs,
    totalTimeoutMs,
    clock,
  };

  const middleware = createProxyMiddleware({
    // Required, and not used: the relay chooses among the upstreams. A URL would be parsed for each request.
    target: { host: 'upstream.invalid' },
    pathFilter: () => true,
    // The default plugins would add their own handling of errors, logs and responses.
    ejectPlugins: true,
    plugins: [
      (proxy) => {
        // Replaces the library's transport; docs/dev/decisions/0009-what-the-chosen-libraries-do.md says why.
        proxy.web = (req: RelayedRequest) => {
          req[RELAY]?.start();
          return STARTED;
        };
        proxy.on('error', () => {}); // `next` gets the error, too; without a listener the event would throw
      },
    ],
  });

  return {
    /** Receives the body of a request: see {@link RequestBody}. */
    receive(req: IncomingMessage, length: number | undefined, limits: BodyLimits): RequestBody {
      return new RequestBody(req, length, { ...limits, deadlines, clock });
    },
    /**
     * Sends a request to an upstream and streams the response to the client. Calls `onOutcome` or `onBug` once at the end,
     * which can be before this returns. Clears `req.url`.
     */
    forward<Request extends ForwardRequest>(request: Request, handlers: ForwardHandlers<Request>): void {
      const { res } = request;
      const req: RelayedRequest = request.req;
      const relay = new Relay(request, handlers, parts);
      req[RELAY] = relay;
      // The middleware parses `req.url` unless it is empty. It must not parse what the client sent.
      req.url = '';
      const abort = (error: unknown) => relay.abort(error ?? new Error('the proxy middleware declined a request'));
      middleware(req, res, abort).catch(abort);
    },
    /** Resolves when all requests have ended and the connections are closed. Later requests fail. */
    close: () => backend.close(),
    /** Returns the status of each upstream, in the order of the URLs. */
    status: () => backend.status(),
  };
}
