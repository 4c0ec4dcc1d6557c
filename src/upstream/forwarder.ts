import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { Pool } from 'undici';
import type { Clock } from '../clock.ts';
import { CallerWatch } from './caller-connection.ts';
import { createConnector } from './connect.ts';
import { ConnectionSlots } from './connection-slots.ts';
import { type ForwardOutcome, type ForwardRequest, Relay, type RelayContext } from './relay.ts';

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
   * Sends a GET or HEAD to the upstream and streams its answer into `res`. Resolves when all is over; nothing was
   * written to `res` if the outcome is `failed` without `headSent`. Rejects on a bug only, with the caller's
   * connection cut if the head was sent. `req.url` is overwritten.
   */
  forward(req: IncomingMessage, res: ServerResponse, request: ForwardRequest): Promise<ForwardOutcome>;
  /** Resolves when the exchanges under way are over and the connections are closed; later requests are refused. */
  close(): Promise<void>;
}

export function createForwarder(options: ForwarderOptions): Forwarder {
  const { url, maxConnections, responseTimeoutMs, totalTimeoutMs, ownAnswerNames, clock } = options;
  const pool = new Pool(url, {
    connections: maxConnections,
    pipelining: 1,
    connect: createConnector(options.connectTimeoutMs),
    maxHeaderSize: options.maxHeaderBytes,
    // The deadlines of an exchange are Relay's: undici's are coarse, and measure idleness.
    headersTimeout: 0,
    bodyTimeout: 0,
    allowH2: false,
  });
  const slots = new ConnectionSlots(maxConnections);
  const context: RelayContext = {
    pool,
    servername: url.protocol === 'https:' && isIP(url.hostname) === 0 ? url.hostname : undefined,
    slots,
    callers: new CallerWatch(),
    ownAnswerNames,
    responseTimeoutMs,
    totalTimeoutMs,
    clock,
  };
  const relays = new WeakMap<IncomingMessage, Relay>();

  function relayOf(req: IncomingMessage): Relay {
    const relay = relays.get(req);
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
    forward(req, res, request) {
      const relay = new Relay(req, res, request, context);
      relays.set(req, relay);
      // The middleware's path filter gives this to `new URL()`, which must never see the caller's text.
      req.url = '/';
      const giveUp = (error: unknown) => relay.giveUp(error ?? new Error('the proxy middleware declined a request'));
      middleware(req, res, giveUp).catch(giveUp);
      return relay.outcome;
    },
    close() {
      closing ??= slots.idle().then(() => pool.close());
      return closing;
    },
  };
}
