import type { IncomingMessage } from 'node:http';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { Deadlines } from './deadlines.ts';
import type { Destination, ForwardHandlers, ForwardRequest } from './forward-request.ts';
import { Relay, type RelayParts } from './relay.ts';
import { type BodyLimits, RequestBody } from './request-body.ts';
import { createResponseFilter } from './response-headers.ts';

interface ForwarderOptions extends Pick<RelayParts, 'clock'> {
  /** Response header names, in lower case, that only the gateway sets; the upstream's are dropped. */
  readonly ownHeaderNames: ReadonlySet<string>;
}

export type Forwarder = ReturnType<typeof createForwarder>;

/** Property of a request that holds its relay: the middleware passes on only the request and the response. */
const RELAY = Symbol('relay');
type RelayedRequest = IncomingMessage & { [RELAY]?: Relay };
const STARTED = Promise.resolve();

export function createForwarder({ ownHeaderNames, clock }: ForwarderOptions) {
  const deadlines = new Deadlines(clock);
  const parts: RelayParts = { deadlines, passedLines: createResponseFilter(ownHeaderNames), clock };

  const middleware = createProxyMiddleware({
    // Required, and not used: the route names the backend, which chooses among its upstreams. A URL would be parsed for
    // each request.
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
     * Sends a request to an upstream of its backend and streams the response to the client. Calls `onOutcome` or `onBug` once at the end,
     * which can be before this returns. Clears `req.url`.
     */
    forward<Request extends ForwardRequest>(
      request: Request,
      destination: Destination,
      handlers: ForwardHandlers<Request>,
    ): void {
      const { res } = request;
      const req: RelayedRequest = request.req;
      const relay = new Relay(request, destination, handlers, parts);
      req[RELAY] = relay;
      // The middleware parses `req.url` unless it is empty. It must not parse what the client sent.
      req.url = '';
      const abort = (error: unknown) => relay.abort(error ?? new Error('the proxy middleware declined a request'));
      middleware(req, res, abort).catch(abort);
    },
  };
}
