/**
 * Tracks the client connections of a listener and limits what they cost.
 *
 * - Total: at the limit, a new connection displaces an idle one, so slow or silent clients cannot lock others out.
 *   First choice is the oldest connection without a complete request, if it is older than {@link FIRST_REQUEST_MS} or
 *   if most connections are like it. Second choice is a connection without a request in progress. If none is found,
 *   some extra connections are accepted only to answer 503, and the rest are closed.
 * - Per connection: a limited number of requests is in progress at once. Further pipelined requests wait, unread where
 *   possible, and are answered in order.
 * - Connections that stop reading are closed, because unread responses are buffered in memory.
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Clock } from '../base/clock.ts';
import { resetSocket } from '../base/reset-socket.ts';
import type { CloseReason, Metrics } from '../observability/metrics.ts';
import { endAndLinger } from './final-response.ts';

export interface ConnectionLimits {
  readonly connections: number;
  /** Maximum requests in progress on one connection; further ones wait. */
  readonly pipelined: number;
  /** A connection is closed if the client reads none of its pending response bytes for this long. */
  readonly answerStallTimeoutMs: number;
}

export interface ConnectionsOptions {
  readonly limits: ConnectionLimits;
  readonly clock: Clock;
  readonly observer: Pick<Metrics, 'connection' | 'connectionClosed'>;
}

/** Age from which a new connection can displace one without a complete request. */
const FIRST_REQUEST_MS = 1000;
/** Maximum connections above the limit: accepted only to answer 503, or displaced and not closed yet. */
const MOST_SURPLUS = 512;
/** Connections checked per search for an idle one. The next search continues after them. */
const LOOKED_AT = 64;
/** Interval of the check for stalled responses: the resolution of their timeout. */
const SWEEP_MS = 1000;

/** Socket property with the connection's state: a map would cost a lookup per request. */
const CONNECTION = Symbol('connection');
type TrackedSocket = Socket & { [CONNECTION]?: Connection };

function of(socket: Socket): Connection | undefined {
  return (socket as TrackedSocket)[CONNECTION];
}

/** A pipelined request that is parsed but not started. */
interface Held {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
}

interface Connection {
  /** The accepted TCP socket. With TLS, the one below the socket that carries the requests. */
  readonly accepted: Socket;
  /** The socket that carries requests. Until the TLS handshake is complete, the same as `accepted`. */
  socket: TrackedSocket;
  readonly openedAtMs: number;
  /** Accepted above the limit, only to answer 503. */
  readonly isSurplus: boolean;
  /** A request was received. */
  hasAsked: boolean;
  /** A response was completed. The client may not have read it yet. */
  hasAnswered: boolean;
  /** `bytesRead` of the socket at the last request: if it grew since, part of another request has arrived. */
  bytesReadWithRequests: number;
  /** Requests in progress: the kernel has not accepted all of their responses. */
  underWay: number;
  /** Response to the last request received, started or waiting. Undefined once that response is closed. */
  newest: ServerResponse | undefined;
  /** A response closes the connection. Requests received after its own are dropped (RFC 9112 §9.6). */
  isEnding: boolean;
  /** Input after the connection's last request is read and discarded. */
  isDiscarding: boolean;
  /** Monotonic ms: the last time at which reading from the connection was known to be paused. */
  unreadUntilMs: number;
  /** Fires if a request header is still incomplete some time after reading resumed. */
  lateHeadTimer: NodeJS.Timeout | undefined;
  /**
   * Requests that wait for others to complete (see {@link ConnectionLimits.pipelined}). Undefined if there are none.
   */
  held: Held[] | undefined;
  /**
   * Write progress, and since when (monotonic ms) it has not changed. `taken`: bytes of completed writes. `queued`:
   * bytes of the current write that the kernel has not accepted.
   */
  stall: { readonly taken: number; readonly queued: number; readonly sinceMs: number } | undefined;
}

export interface Connections {
  /** Passes the requests of `server` to `handle`. Call it once, before the server listens. */
  serve(server: Server | TlsServer, handle: RequestListener): void;
  /** Returns whether the connection was accepted above the limit, only to answer 503. */
  isSurplus(socket: Socket): boolean;
  /** Closes a connection at once, and counts it with `reason` in the metrics. */
  cut(socket: Socket, reason: CloseReason): void;
  /** Closes the connection of a response that was begun and cannot be completed, so that the client notices. */
  breakOff(res: ServerResponse): void;
  /**
   * Returns whether a request header is late because the gateway itself paused reading (too many pipelined requests, or
   * responses that the client does not read). If so, calls `late` if the header is incomplete `timeoutMs` after reading
   * resumed.
   */
  excusesLateHead(socket: Socket, timeoutMs: number, late: () => void): boolean;
  /** Returns whether requests can arrive on this socket: with TLS, only after the handshake. */
  isOpen(socket: Socket): boolean;
  /**
   * Makes each connection close after the response to its newest request. If that response's headers are already sent,
   * or no request is in progress, the connection closes after its next response.
   */
  endAll(): void;
  /** Closes the connections that have no request, complete or partly received, and no unsent bytes. */
  closeIdle(): void;
  /**
   * Closes every connection at once, including those in a TLS handshake, which Node.js's HTTP server doesn't track. A
   * client whose response is truncated notices.
   */
  destroyAll(): void;
  close(): void;
}

export function createConnections({ limits, clock, observer }: ConnectionsOptions): Connections {
  /** Connections without a complete request yet, oldest first. */
  const unasked = new Set<Connection>();
  /** Connections that have sent a request. Those checked by `findIdle` move to the end. */
  const asked = new Set<Connection>();
  let heldCount = 0;
  let areEnding = false;
  let handle: RequestListener = () => {};

  const count = () => unasked.size + asked.size;

  function opened(accepted: Socket): void {
    const isSurplus = count() >= limits.connections && !makeRoom();
    const connection: Connection = {
      accepted,
      socket: accepted,
      openedAtMs: clock.monotonicMs(),
      isSurplus,
      hasAsked: false,
      hasAnswered: false,
      bytesReadWithRequests: 0,
      underWay: 0,
      newest: undefined,
      isEnding: false,
      isDiscarding: false,
      unreadUntilMs: Number.NEGATIVE_INFINITY,
      lateHeadTimer: undefined,
      held: undefined,
      stall: undefined,
    };
    (accepted as TrackedSocket)[CONNECTION] = connection;
    unasked.add(connection);
    observer.connection(1);
    accepted.once('close', () => forget(connection));
  }

  function secured(socket: TLSSocket): void {
    const connection = of(belowTls(socket));
    if (connection === undefined) return;
    connection.socket = socket;
    (socket as TrackedSocket)[CONNECTION] = connection;
  }

  function forget(connection: Connection): void {
    if (!unasked.delete(connection) && !asked.delete(connection)) return;
    observer.connection(-1);
    clearTimeout(connection.lateHeadTimer);
    heldCount -= connection.held?.length ?? 0;
    connection.held = undefined;
  }

  function makeRoom(): boolean {
    const victim = findIdle();
    if (victim === undefined) return false;
    cutConnection(victim, 'displaced');
    return true;
  }

  function findIdle(): Connection | undefined {
    const [oldest] = unasked;
    if (oldest !== undefined) {
      const isLate = clock.monotonicMs() - oldest.openedAtMs >= FIRST_REQUEST_MS;
      // If most connections never sent a request, they cause the shortage: displace one of them, not a good client's.
      const isOfCrowd = !oldest.isSurplus && unasked.size > asked.size;
      if (isLate || isOfCrowd) return oldest;
    }
    let looks = Math.min(LOOKED_AT, asked.size);
    for (const connection of asked) {
      if (looks-- === 0) break;
      if (connection.underWay === 0) return connection;
      asked.delete(connection);
      asked.add(connection);
    }
    return undefined;
  }

  function cutConnection(connection: Connection, reason: CloseReason): void {
    const { accepted, socket } = connection;
    forget(connection);
    // A reset frees the kernel's send buffer, which a slow reader may never read. Other clients may still read theirs.
    if (reason === 'slow_reader' && accepted === socket) accepted.resetAndDestroy();
    socket.destroy();
    accepted.destroy();
    observer.connectionClosed(reason);
  }

  const take: RequestListener = (req, res) => {
    const connection = of(req.socket);
    if (connection === undefined) return handle(req, res);
    const { newest } = connection;
    if (connection.isEnding || newest?.shouldKeepAlive === false) return drop(connection);
    connection.bytesReadWithRequests = req.socket.bytesRead;
    if (connection.lateHeadTimer !== undefined) {
      clearTimeout(connection.lateHeadTimer);
      connection.lateHeadTimer = undefined;
    }
    if (!connection.hasAsked) {
      connection.hasAsked = true;
      unasked.delete(connection);
      asked.add(connection);
    }
    connection.newest = res;
    if (areEnding) res.shouldKeepAlive = false;
    if (connection.underWay < limits.pipelined) start(connection, req, res);
    else hold(connection, { req, res });
  };

  function drop(connection: Connection): void {
    if (connection.isDiscarding) return;
    connection.isDiscarding = true;
    discardInput(connection.socket);
  }

  function start(connection: Connection, req: IncomingMessage, res: ServerResponse): void {
    connection.underWay++;
    res.on('close', answered);
    handle(req, res);
    if (endsConnection(res)) connection.isEnding = true;
  }

  /** Listener shared by all responses: a closure would be one more allocation per request. */
  function answered(this: ServerResponse): void {
    const connection = of(this.req.socket);
    if (connection === undefined) return;
    connection.underWay--;
    connection.hasAnswered = true;
    if (connection.newest === this) connection.newest = undefined;
    if (endsConnection(this)) connection.isEnding = true;
    if (connection.held !== undefined) startHeld(connection, connection.held);
  }

  /** Starts as many waiting requests as the limit allows. If the connection is closing, drops all of them. */
  function startHeld(connection: Connection, held: Held[]): void {
    while (!connection.isEnding && connection.underWay < limits.pipelined) {
      const next = held.shift();
      if (next === undefined) break;
      heldCount--;
      start(connection, next.req, next.res);
    }
    if (held.length > 0 && !connection.isEnding) return;
    heldCount -= held.length;
    connection.held = undefined;
    connection.unreadUntilMs = clock.monotonicMs();
    readAgain(connection.socket);
  }

  /** Queues a request and pauses reading. More can follow, because input already read is parsed nevertheless. */
  function hold(connection: Connection, held: Held): void {
    // Over all connections, as many requests may wait as there may be connections: more than normal clients cause.
    if (heldCount >= limits.connections) {
      cutConnection(connection, 'pipelined');
      return;
    }
    heldCount++;
    if (connection.held === undefined) {
      connection.held = [held];
      readNoMore(connection.socket, () => connection.held !== undefined);
    } else {
      connection.held.push(held);
    }
  }

  function sweep(): void {
    const nowMs = clock.monotonicMs();
    for (const connection of asked) {
      if (connection.underWay > 0 && hasStalled(connection, nowMs)) cutConnection(connection, 'slow_reader');
    }
  }

  function hasStalled(connection: Connection, nowMs: number): boolean {
    const { socket, stall } = connection;
    const waiting = socket.writableLength;
    if (waiting === 0) {
      connection.stall = undefined;
      return false;
    }
    const taken = socket.bytesWritten - waiting;
    const queued = queuedBytes(socket);
    if (stall === undefined || stall.taken !== taken || stall.queued !== queued) {
      connection.stall = { taken, queued, sinceMs: nowMs };
      return false;
    }
    return nowMs - stall.sinceMs >= limits.answerStallTimeoutMs;
  }

  function isIdle({ socket, underWay, bytesReadWithRequests }: Connection): boolean {
    return underWay === 0 && socket.writableLength === 0 && socket.bytesRead === bytesReadWithRequests;
  }

  function excusesLateHead(connection: Connection, timeoutMs: number, late: () => void): boolean {
    const nowMs = clock.monotonicMs();
    if (connection.socket.isPaused()) connection.unreadUntilMs = nowMs;
    const restMs = connection.unreadUntilMs + timeoutMs - nowMs;
    if (restMs <= 0) return false;
    // Node.js reports a late header only once, so the remaining time is measured here.
    connection.lateHeadTimer = setTimeout(() => {
      if (!excusesLateHead(connection, timeoutMs, late)) late();
    }, restMs);
    return true;
  }

  const sweeping = setInterval(sweep, SWEEP_MS).unref();

  return {
    serve(server, handler) {
      handle = handler;
      // Must run before Node.js's own listeners: those may emit events whose handlers need the connection's state.
      server.prependListener('connection', opened);
      server.prependListener('secureConnection', secured);
      server.maxConnections = limits.connections + MOST_SURPLUS;
      // Without listeners for the last two, Node.js would itself send 100 or 417 before the gateway sees the request.
      for (const event of ['request', 'checkContinue', 'checkExpectation']) server.on(event, take);
      server.on('drop', () => observer.connectionClosed('surplus'));
    },
    isSurplus: (socket) => of(socket)?.isSurplus ?? false,
    isOpen: (socket) => of(socket) !== undefined,
    cut(socket, reason) {
      const connection = of(socket) ?? of(belowTls(socket));
      if (connection !== undefined) cutConnection(connection, reason);
      else socket.destroy();
    },
    breakOff(res) {
      const connection = of(res.req.socket);
      if (connection !== undefined) {
        connection.isEnding = true;
        if (connection.held !== undefined) startHeld(connection, connection.held);
      }
      // A reset also discards unsent bytes of complete earlier responses. If there are any, close without a reset:
      // HTTP/1.1 framing shows the truncation to a client that checks it (RFC 9112 §8).
      if (res.socket === null) res.once('socket', endAndLinger);
      else if (connection?.hasAnswered && res.req.httpVersion === '1.1') endAndLinger(res.socket);
      else resetSocket(res.socket);
    },
    excusesLateHead(socket, timeoutMs, late) {
      const connection = of(socket);
      return connection !== undefined && excusesLateHead(connection, timeoutMs, late);
    },
    endAll() {
      areEnding = true;
      // A response whose headers are sent has promised keep-alive: the next response closes the connection.
      for (const { newest } of asked) if (newest?.headersSent === false) newest.shouldKeepAlive = false;
    },
    closeIdle() {
      for (const connection of [...unasked, ...asked]) if (isIdle(connection)) connection.socket.destroy();
    },
    destroyAll() {
      for (const { socket, accepted, newest } of [...unasked, ...asked]) {
        // In HTTP/1.0 the close may end the response: a graceful one would make a truncated response look complete.
        if (newest?.req.httpVersion === '1.0') resetSocket(socket);
        socket.destroy();
        accepted.destroy();
      }
    },
    close: () => clearInterval(sweeping),
  };
}

/** Returns whether Node.js closes the connection after this response. Once headers are built, only `_last` tells. */
function endsConnection(res: ServerResponse): boolean {
  return !res.shouldKeepAlive || (res as ServerResponse & { readonly _last?: boolean })._last === true;
}

/** Returns the TCP socket below a TLS socket, which only a private field of Node.js has; else the socket itself. */
function belowTls(socket: Socket): Socket {
  return (socket as Socket & { readonly _parent?: Socket })._parent ?? socket;
}

/** Returns the bytes of the current write that the kernel has not accepted. Node.js's idle timeout reads it, too. */
function queuedBytes(socket: Socket): number {
  return (socket as Socket & { readonly _handle?: { readonly writeQueueSize?: number } })._handle?.writeQueueSize ?? 0;
}

/**
 * Stops reading from a socket. Disables `resume`, because Node.js resumes a socket at the start and end of each
 * request. Pauses on the next tick, after any `resume` in progress.
 */
function readNoMore(socket: Socket, isWanted: () => boolean): void {
  socket.resume = () => socket;
  process.nextTick(() => {
    if (isWanted()) socket.pause();
  });
}

function readAgain(socket: Socket): void {
  Reflect.deleteProperty(socket, 'resume');
  socket.resume();
}

/**
 * Reads and discards further input of a connection whose last request was received. Bypasses Node.js's parser, which
 * keeps an object per request. Input that is unread at the close, or arrives later, would reset the connection and
 * discard the end of the last response. So it is closed in two steps (RFC 9112 §9.6), not at once as by Node.js.
 */
function discardInput(socket: Socket): void {
  socket.destroySoon = () => endAndLinger(socket);
  // Deferred, because the parser is running: it emits all requests of one packet in one call.
  process.nextTick(() => {
    for (const listener of socket.listeners('data')) socket.off('data', listener as () => void);
    // Adding a listener makes Node.js detach its parser from the connection.
    socket.on('data', () => {});
  });
}
