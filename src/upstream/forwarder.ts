import type { IncomingMessage, ServerResponse } from 'node:http';
import { createProxyMiddleware } from 'http-proxy-middleware';
import type { Clock } from '../clock.ts';
import { CallerWatch } from './caller-connection.ts';
import { createConnect } from './connect.ts';
import { ConnectionPool } from './connection-pool.ts';
import { Deadlines } from './deadlines.ts';
import { type ForwardRequest, Relay, type RelayContext } from './relay.ts';

export type { ForwardOutcome, ForwardRequest } from './relay.ts';

export interface ForwarderOptions {
  /** The upstream's origin. */
  readonly url: URL;
  readonly connectTimeoutMs: number;
  /** From the request's begin to the head of the answer. */
  readonly responseTimeoutMs: number;
  /** From the call to the answer's last byte in the caller's hands. */
  readonly totalTimeoutMs: number;
  readonly maxConnections: number;
  /** Of the upstream's header fields. */
  readonly maxHeaderBytes: number;
  /** Fields of the answer, in lower case, that only the gateway gives: the upstream's own are dropped. */
  readonly ownAnswerNames: ReadonlySet<string>;
  readonly clock: Clock;
}

export interface Forwarder {
  /**
   * Sends a GET or HEAD to the upstream and streams its answer into `res`; `request` hears of the end, which may come
   * before this returns. `req.url` is overwritten.
   */
  forward(req: IncomingMessage, res: ServerResponse, request: ForwardRequest): void;
  /** Resolves when the exchanges under way are over and the connections are closed; later requests are refused. */
  close(): Promise<void>;
}

/** Where a request carries its relay through the middleware. */
const RELAY = Symbol('relay');

export function createForwarder(options: ForwarderOptions): Forwarder {
  const { url, responseTimeoutMs, totalTimeoutMs, ownAnswerNames, clock } = options;
  const pool = new ConnectionPool({
    connect: createConnect(url, options.connectTimeoutMs),
    maxConnections: options.maxConnections,
    maxHeaderBytes: options.maxHeaderBytes,
    clock,
  });
  const context: RelayContext = {
    pool,
    authority: url.host,
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
    target: url,
    pathRewrite: (_path, req) => relayOf(req).approvedPath,
    // Its own transport and its plugins would follow their own ideas of timeouts, headers and errors.
    ejectPlugins: true,
    plugins: [
      (proxy) => {
        proxy.web = async (req) => relayOf(req).start(req.url ?? '');
        proxy.on('error', () => {}); // it comes by `next` as well; without a listener it would be thrown
      },
    ],
  });

  let closing: Promise<void> | undefined;
  return {
    forward(req: IncomingMessage & { [RELAY]?: Relay }, res, request) {
      const relay = new Relay(req, res, request, context);
      req[RELAY] = relay;
      // The middleware's path filter gives this to `new URL()`, which must never see the caller's text.
      req.url = '/';
      const giveUp = (error: unknown) => relay.giveUp(error ?? new Error('the proxy middleware declined a request'));
      middleware(req, res, giveUp).catch(giveUp);
    },
    close() {
      closing ??= pool.close();
      return closing;
    },
  };
}
