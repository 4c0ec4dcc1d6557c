/**
 * Tracks the client connections of a listener and limits what they cost.
 *
 * - Total: at the limit, a new connection displaces an idle one, so slow or silent clients cannot lock others out: the
 *   oldest connection without a complete request, if it is older than {@link FIRST_REQUEST_MS} or if most connections
 *   are like it; else one without a request in progress. If there is none, some extra connections are accepted only to
 *   answer 503, and the rest are closed.
 * - Per connection: a limited number of requests is in progress at once, and more than one only if all of them have safe
 *   methods (RFC 9112 §9.3.2). Further pipelined requests wait, unread where possible. Responses are sent in order.
 * - Connections that stop reading are closed, because unread responses are buffered in memory.
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import { Server as NetServer, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Clock } from '../../base/clock.ts';
import { pauseReading, resumeReading } from '../../base/pause-reading.ts';
import { resetSocket, unacceptedBytes } from '../../base/reset-socket.ts';
import { belowTls, discardInput, endAndLinger, endsConnection, joinUnreadBody } from './socket-control.ts';

interface ConnectionLimits {
  readonly connections: number;
  /** Maximum requests in progress on one connection, all with safe methods; further ones wait. */
  readonly pipelined: number;
  /** A connection is closed if the client reads none of its pending response bytes for this long. */
  readonly responseStallTimeoutMs: number;
}

/** Why the gateway closed a client connection instead of serving it. */
export type CloseReason = 'displaced' | 'surplus' | 'silent' | 'slow_reader' | 'pipelined' | 'tls';

/** Counts connections. Implementations never throw. */
interface ConnectionObserver {
  /** `change`: 1 for an accepted connection, -1 for a closed one. */
  connection(change: 1 | -1): void;
  connectionClosed(reason: CloseReason): void;
}

interface ConnectionsOptions {
  readonly limits: ConnectionLimits;
  readonly clock: Clock;
  readonly observer: ConnectionObserver;
  /** Returns whether a new connection can displace one whose only request in progress is this one. Default: never. */
  readonly mayDisplace?: (req: IncomingMessage) => boolean;
}

/** Age from which a new connection can displace one without a complete request. */
const FIRST_REQUEST_MS = 1000;
/** Maximum connections above the limit: accepted only to answer 503, or displaced and not closed yet. */
const MAX_SURPLUS = 512;
/** Connections checked per search for an idle one. The next search continues after them. */
const CHECKED_PER_SEARCH = 64;
/** Minimum interval between two refusals for overload on one connection. */
const OVERLOAD_REFUSAL_MS = 1000;
/** Interval at which a drain closes the connections that have become idle. */
const DRAIN_CHECK_MS = 50;
/** Interval of the check for stalled responses: the resolution of their timeout. */
const SWEEP_MS = 1000;
/** RFC 9110 §9.2.1. */
const SAFE_METHODS: ReadonlySet<string | undefined> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Socket property with the connection's state: a map would cost a lookup per request. */
const CONNECTION = Symbol('connection');
type TrackedSocket = Socket & { [CONNECTION]?: Connection };

function connectionOf(socket: Socket): Connection | undefined {
  return (socket as TrackedSocket)[CONNECTION];
}

/** Returns whether the headers say that a body follows. */
export function announcesBody({ headers }: IncomingMessage): boolean {
  return (headers['content-length'] ?? '0') !== '0' || headers['transfer-encoding'] !== undefined;
}

class Connection {
  /** The accepted TCP socket. With TLS, the one below the socket that carries the requests. */
  readonly accepted: Socket;
  /** The socket that carries requests. Until the TLS handshake is complete, the same as `accepted`. */
  socket: TrackedSocket;
  readonly openedAtMs: number;
  /** Accepted above the limit, only to answer 503. */
  readonly isSurplus: boolean;
  hasRequest = false;
  /** A response was completed. The client may not have read it yet. */
  hasResponded = false;
  /** `bytesRead` of the socket at the last request: if it grew since, part of another request has arrived. */
  bytesReadWithRequests = 0;
  /** Requests in progress: the kernel has not accepted all of their responses. */
  inProgress = 0;
  /** The request in progress has an unsafe method: no other one may overtake it. */
  isExclusive = false;
  /** Response to the last request received, started or waiting. Undefined once that response is closed. */
  newest: ServerResponse | undefined;
  /** Monotonic ms: when the next request may be refused for overload. */
  refusableFromMs = 0;
  /** A response closes the connection. Requests received after its own are dropped (RFC 9112 §9.6). */
  isEnding = false;
  /** Input after the connection's last request is read and discarded. */
  isDiscarding = false;
  /** Monotonic ms: the last time at which reading from the connection was known to be paused. */
  unreadUntilMs = Number.NEGATIVE_INFINITY;
  /** Fires if a request header is still incomplete some time after reading resumed. */
  lateHeadTimer: NodeJS.Timeout | undefined;
  /** Why the gateway closed the connection early; undefined if it did not. */
  closeReason: CloseReason | undefined;
  /** Responses to parsed requests that wait for others to complete. Undefined if there are none. */
  waiting: ServerResponse[] | undefined;
  /**
   * Write progress, and since when (monotonic ms) it has not changed. `writtenBytes`: of completed writes. `queuedBytes`:
   * of the current write that the kernel has not accepted.
   */
  stall: { readonly writtenBytes: number; readonly queuedBytes: number; readonly sinceMs: number } | undefined;

  constructor(accepted: Socket, openedAtMs: number, isSurplus: boolean) {
    this.accepted = accepted;
    this.socket = accepted;
    this.openedAtMs = openedAtMs;
    this.isSurplus = isSurplus;
  }
}

export type Connections = ReturnType<typeof createConnections>;

export function createConnections({ limits, clock, observer, mayDisplace = () => false }: ConnectionsOptions) {
  /** Connections without a complete request yet, oldest first. */
  const withoutRequest = new Set<Connection>();
  /** Connections that have sent a request. Those checked by `findIdle` move to the end. */
  const withRequest = new Set<Connection>();
  let waitingCount = 0;
  let isDraining = false;
  let server: Server | TlsServer | undefined;
  let handle: RequestListener = () => {};

  function opened(accepted: Socket): void {
    const isFull = withoutRequest.size + withRequest.size >= limits.connections;
    const idle = isFull ? findIdle() : undefined;
    if (idle !== undefined) abort(idle, 'displaced');
    const connection = new Connection(accepted, clock.monotonicMs(), isFull && idle === undefined);
    (accepted as TrackedSocket)[CONNECTION] = connection;
    accepted.destroySoon = closeAfterResponse;
    withoutRequest.add(connection);
    observer.connection(1);
    accepted.once('close', () => forget(connection));
  }

  function secured(socket: TLSSocket): void {
    const connection = connectionOf(belowTls(socket));
    if (connection === undefined) return;
    connection.socket = socket;
    (socket as TrackedSocket)[CONNECTION] = connection;
    socket.destroySoon = closeAfterResponse;
  }

  /**
   * Replaces the method that Node.js calls after the last response of a connection. A connection that is closed with
   * unread input is reset, and the client may lose the response: so one with input left is closed in two steps.
   */
  function closeAfterResponse(this: Socket): void {
    const connection = connectionOf(this);
    const hasInput = connection?.isDiscarding || connection?.newest?.req.complete === false;
    if (hasInput) endAndLinger(this);
    else Socket.prototype.destroySoon.call(this);
  }

  function forget(connection: Connection): void {
    if (!withoutRequest.delete(connection) && !withRequest.delete(connection)) return;
    observer.connection(-1);
    clearTimeout(connection.lateHeadTimer);
    waitingCount -= connection.waiting?.length ?? 0;
    connection.waiting = undefined;
  }

  function findIdle(): Connection | undefined {
    const [oldest] = withoutRequest;
    if (oldest !== undefined) {
      const isLate = clock.monotonicMs() - oldest.openedAtMs >= FIRST_REQUEST_MS;
      // If most connections never sent a request, they cause the shortage: displace one of them, not a good client's.
      const areMajority = !oldest.isSurplus && withoutRequest.size > withRequest.size;
      if (isLate || areMajority) return oldest;
    }
    let checksLeft = Math.min(CHECKED_PER_SEARCH, withRequest.size);
    for (const connection of withRequest) {
      if (checksLeft-- === 0) break;
      const { inProgress, waiting, newest } = connection;
      const isAlone = inProgress === 1 && waiting === undefined;
      if (inProgress === 0 || (isAlone && newest && mayDisplace(newest.req))) return connection;
      withRequest.delete(connection);
      withRequest.add(connection);
    }
    return undefined;
  }

  function abort(connection: Connection, reason: CloseReason): void {
    const { accepted, socket } = connection;
    connection.closeReason = reason;
    forget(connection);
    // A reset frees the kernel's send buffer, which a slow reader may never read. Other clients may still read theirs.
    if (reason === 'slow_reader' && accepted === socket) accepted.resetAndDestroy();
    socket.destroy();
    accepted.destroy();
    observer.connectionClosed(reason);
  }

  const receive: RequestListener = (req, res) => {
    const connection = connectionOf(req.socket);
    if (connection === undefined) return handle(req, res);
    const { newest } = connection;
    if (connection.isEnding || newest?.shouldKeepAlive === false) {
      if (!connection.isDiscarding) discardInput(connection.socket);
      connection.isDiscarding = true;
      return;
    }
    connection.bytesReadWithRequests = req.socket.bytesRead;
    if (announcesBody(req)) req.once('end', onRequestComplete);
    if (connection.lateHeadTimer !== undefined) {
      clearTimeout(connection.lateHeadTimer);
      connection.lateHeadTimer = undefined;
    }
    if (!connection.hasRequest) {
      connection.hasRequest = true;
      withoutRequest.delete(connection);
      withRequest.add(connection);
    }
    connection.newest = res;
    if (isDraining) res.shouldKeepAlive = false;
    if (connection.waiting === undefined && mayStart(connection, req)) start(connection, res);
    else wait(connection, res);
  };

  function mayStart({ inProgress, isExclusive }: Connection, { method }: IncomingMessage): boolean {
    return inProgress === 0 || (inProgress < limits.pipelined && !isExclusive && SAFE_METHODS.has(method));
  }

  function start(connection: Connection, res: ServerResponse): void {
    connection.inProgress++;
    connection.isExclusive = !SAFE_METHODS.has(res.req.method);
    res.on('close', onResponseClosed);
    handle(res.req, res);
    if (endsConnection(res)) connection.isEnding = true;
  }

  /** Shared like {@link onResponseClosed}. */
  function onRequestComplete(this: IncomingMessage): void {
    const connection = connectionOf(this.socket);
    if (connection !== undefined) connection.bytesReadWithRequests = this.socket.bytesRead;
  }

  /** Listener shared by all responses: a closure would be one more allocation per request. */
  function onResponseClosed(this: ServerResponse): void {
    const connection = connectionOf(this.req.socket);
    if (connection === undefined) return;
    connection.inProgress--;
    connection.hasResponded = true;
    if (connection.newest === this) connection.newest = undefined;
    if (endsConnection(this)) connection.isEnding = true;
    startWaiting(connection);
  }

  /** Starts as many waiting requests as may be in progress. If the connection is closing, drops all of them. */
  function startWaiting(connection: Connection): void {
    const { waiting } = connection;
    if (waiting === undefined) return;
    while (!connection.isEnding) {
      const [next] = waiting;
      if (next === undefined || !mayStart(connection, next.req)) break;
      waiting.shift();
      waitingCount--;
      start(connection, next);
    }
    if (waiting.length > 0 && !connection.isEnding) return;
    waitingCount -= waiting.length;
    connection.waiting = undefined;
    connection.unreadUntilMs = clock.monotonicMs();
    resumeReading(connection.socket);
  }

  /** Queues a request and pauses reading. More can follow, because input already read is parsed nevertheless. */
  function wait(connection: Connection, res: ServerResponse): void {
    // Over all connections, as many requests may wait as there may be connections: more than normal clients cause.
    if (waitingCount >= limits.connections) {
      abort(connection, 'pipelined');
      return;
    }
    waitingCount++;
    if (announcesBody(res.req)) joinUnreadBody(res.req);
    if (connection.waiting === undefined) {
      connection.waiting = [res];
      pauseReading(connection.socket);
    } else {
      connection.waiting.push(res);
    }
  }

  function sweep(): void {
    const nowMs = clock.monotonicMs();
    for (const connection of withRequest) {
      if (connection.inProgress > 0 && hasStalled(connection, nowMs)) abort(connection, 'slow_reader');
    }
  }

  function hasStalled(connection: Connection, nowMs: number): boolean {
    const { socket, stall } = connection;
    const unsentBytes = socket.writableLength;
    if (unsentBytes === 0) {
      connection.stall = undefined;
      return false;
    }
    const writtenBytes = socket.bytesWritten - unsentBytes;
    const queuedBytes = unacceptedBytes(socket);
    if (stall === undefined || stall.writtenBytes !== writtenBytes || stall.queuedBytes !== queuedBytes) {
      connection.stall = { writtenBytes, queuedBytes, sinceMs: nowMs };
      return false;
    }
    return nowMs - stall.sinceMs >= limits.responseStallTimeoutMs;
  }

  /**
   * Returns whether a request header is late because the gateway itself paused reading (too many pipelined requests, or
   * responses that the client does not read). If so, calls `late` if the header is incomplete `timeoutMs` after reading
   * resumed.
   */
  function extendHeaderTimeout(socket: Socket, timeoutMs: number, late: () => void): boolean {
    const connection = connectionOf(socket);
    if (connection === undefined) return false;
    const nowMs = clock.monotonicMs();
    if (connection.socket.isPaused()) connection.unreadUntilMs = nowMs;
    const remainingMs = connection.unreadUntilMs + timeoutMs - nowMs;
    if (remainingMs <= 0) return false;
    // Node.js reports a late header only once, so the remaining time is measured here.
    connection.lateHeadTimer = setTimeout(() => {
      if (!extendHeaderTimeout(socket, timeoutMs, late)) late();
    }, remainingMs);
    return true;
  }

  /** Closes the connections that have no request, complete or partly received, and no unsent bytes. */
  function closeIdle(): void {
    for (const { socket, inProgress, bytesReadWithRequests } of [...withoutRequest, ...withRequest]) {
      const isSilent = socket.writableLength === 0 && socket.bytesRead === bytesReadWithRequests;
      if (inProgress === 0 && isSilent) socket.destroy();
    }
  }

  /** Closes every connection at once, including those in a TLS handshake, which Node.js's HTTP server doesn't track. */
  function destroyAll(): void {
    for (const { socket, accepted, newest } of [...withoutRequest, ...withRequest]) {
      // In HTTP/1.0 the close may end the response: a graceful one would make a truncated response look complete.
      if (newest?.req.httpVersion === '1.0') resetSocket(socket);
      socket.destroy();
      accepted.destroy();
    }
  }

  const sweeping = setInterval(sweep, SWEEP_MS).unref();

  return {
    /** Passes the requests of `listener` to `handler`. Call it once, before the server listens. */
    serve(listener: Server | TlsServer, handler: RequestListener): void {
      server = listener;
      handle = handler;
      // Must run before Node.js's own listeners: those may emit events whose handlers need the connection's state.
      server.prependListener('connection', opened);
      server.prependListener('secureConnection', secured);
      server.maxConnections = limits.connections + MAX_SURPLUS;
      // Without listeners for the last two, Node.js would itself send 100 or 417 before the gateway sees the request.
      for (const event of ['request', 'checkContinue', 'checkExpectation']) server.on(event, receive);
      server.on('drop', () => observer.connectionClosed('surplus'));
    },

    /** Returns whether the connection was accepted above the limit, only to answer 503. */
    isSurplus: (socket: Socket): boolean => connectionOf(socket)?.isSurplus ?? false,

    /** Returns how long to delay a refusal for overload, which leaves one a second to a client that repeats requests. */
    overloadDelayMs(socket: Socket): number {
      const connection = connectionOf(socket);
      if (connection === undefined) return 0;
      const nowMs = clock.monotonicMs();
      const delayMs = Math.max(0, connection.refusableFromMs - nowMs);
      connection.refusableFromMs = nowMs + delayMs + OVERLOAD_REFUSAL_MS;
      return delayMs;
    },

    /** Returns the request whose body is arriving on this socket; undefined if there is none. */
    incompleteRequest(socket: Socket): IncomingMessage | undefined {
      const req = connectionOf(socket)?.newest?.req;
      return req?.complete === false ? req : undefined;
    },

    /** Returns whether requests can arrive on this socket: with TLS, only after the handshake. */
    isOpen: (socket: Socket): boolean => connectionOf(socket) !== undefined,

    /** Returns why the gateway closed a connection early; undefined if it did not. */
    closeReasonOf: (socket: Socket): CloseReason | undefined => connectionOf(socket)?.closeReason,

    /** Closes a connection at once, and counts it with `reason` in the metrics. */
    abort(socket: Socket, reason: CloseReason): void {
      const connection = connectionOf(socket) ?? connectionOf(belowTls(socket));
      if (connection !== undefined) abort(connection, reason);
      else socket.destroy();
    },

    /** Closes the connection of a partly sent response that cannot be completed, so that the client notices. */
    abortResponse(res: ServerResponse): void {
      const connection = connectionOf(res.req.socket);
      if (connection !== undefined) {
        connection.isEnding = true;
        startWaiting(connection);
      }
      // A reset also discards unsent bytes of complete earlier responses. If there are any, close without a reset:
      // HTTP/1.1 framing shows the truncation to a client that checks it (RFC 9112 §8).
      if (res.socket === null) res.once('socket', endAndLinger);
      else if (connection?.hasResponded && res.req.httpVersion === '1.1') endAndLinger(res.socket);
      else resetSocket(res.socket);
    },

    extendHeaderTimeout,

    /**
     * First step of a shutdown: each connection closes after the response to its newest request, or if the headers of that
     * are sent, after the next response (RFC 9112 §9.6). Requests are still accepted: a client that was promised
     * `keep-alive` may be sending its next one.
     */
    beginDrain(): void {
      isDraining = true;
      for (const { newest } of withRequest) if (newest?.headersSent === false) newest.shouldKeepAlive = false;
    },

    /**
     * Second step: stops accepting connections. Closes each one as soon as it is idle, and the rest after `deadlineMs`.
     * Resolves when no connection is left.
     */
    async finishDrain(deadlineMs: number): Promise<void> {
      const closed = Promise.withResolvers<void>();
      // Not close() of Node.js's HTTP server: it treats a connection as idle once its response was passed to end(),
      // and destroys it with the bytes that the client has not received yet.
      NetServer.prototype.close.call(server, () => closed.resolve());
      const checking = setInterval(closeIdle, DRAIN_CHECK_MS);
      const deadline = setTimeout(destroyAll, deadlineMs);
      closeIdle();
      await closed.promise;
      clearInterval(checking);
      clearTimeout(deadline);
    },

    close: () => clearInterval(sweeping),
  };
}
