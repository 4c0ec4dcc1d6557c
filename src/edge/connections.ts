/**
 * The connections of callers, and what they may cost.
 *
 * - In all: at the limit, a newcomer takes the place of a connection that does nothing, so that whoever opens connections
 *   and sends slowly or nothing keeps nobody out. First goes the oldest that has never sent a whole request in its time,
 *   or where such are most, then one without a request under way. Where all are busy, some more are let in to be told so,
 *   and the rest is cut.
 * - Each: so many requests are worked on at once; further ones that it pipelined wait, unread as far as possible, and are
 *   answered in their order.
 * - Callers that do not take their answers are cut: what waits for them is memory.
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Clock } from '../clock.ts';
import type { CutReason, Metrics } from '../observability/metrics.ts';
import { resetSocket } from '../upstream/caller-connection.ts';
import { endAndLinger } from './last-answer.ts';

export interface ConnectionLimits {
  readonly connections: number;
  /** Requests of one connection that are worked on at once. */
  readonly pipelined: number;
  /** In which a caller takes at least something of an answer that waits for it. */
  readonly answerStallTimeoutMs: number;
}

export interface ConnectionsOptions {
  readonly limits: ConnectionLimits;
  readonly clock: Clock;
  readonly observer: Pick<Metrics, 'connection' | 'connectionCut'>;
}

/** A connection has so long for its first request before a newcomer may take its place. */
const FIRST_REQUEST_MS = 1000;
/** Connections beyond the limit: of those who are told that the gateway is overloaded, and of those not closed yet. */
const MOST_SURPLUS = 512;
/** So many are looked at to find one that does nothing; the next look begins behind them. */
const LOOKED_AT = 64;
/** How often stalled answers are looked for: the error of their timeout. */
const SWEEP_MS = 1000;

/** On the socket itself: a map would have to be asked for each request. */
const CONNECTION = Symbol('connection');
type TrackedSocket = Socket & { [CONNECTION]?: Connection };

function of(socket: Socket): Connection | undefined {
  return (socket as TrackedSocket)[CONNECTION];
}

interface Held {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
}

interface Connection {
  /** What was accepted; with TLS, below the one that carries the requests. */
  readonly accepted: Socket;
  /** That carries requests; until TLS stands, the accepted one. */
  socket: TrackedSocket;
  readonly openedAtMs: number;
  readonly isSurplus: boolean;
  hasAsked: boolean;
  /** A response was completed. The client may not have read it yet. */
  hasAnswered: boolean;
  /** `bytesRead` of the socket at the last request: if it grew since, part of another request has arrived. */
  bytesReadWithRequests: number;
  /** Requests whose answers the system has not taken yet. */
  underWay: number;
  /** Of the last request that came, whether it is worked on already or not. */
  newest: ServerResponse | undefined;
  /** An answer ends the connection: what came after its request is not worked on (RFC 9112 §9.6). */
  isEnding: boolean;
  /** Input behind the last request of the connection is read and discarded. */
  isDiscarding: boolean;
  /** Monotonic ms: the last time at which the gateway is known not to have read from the connection. */
  unreadUntilMs: number;
  /** Fires if the rest of a request head does not arrive after the gateway reads again. */
  lateHeadTimer: NodeJS.Timeout | undefined;
  held: Held[] | undefined;
  /** What the caller had not taken when it was looked at, and since when it has not taken more. */
  stall: { readonly taken: number; readonly queued: number; readonly sinceMs: number } | undefined;
}

export interface Connections {
  /** Hands the requests of `server`, which does not listen yet, to `handle`. To be called once. */
  serve(server: Server | TlsServer, handle: RequestListener): void;
  /** It was let in beyond the limit, to be told that there is no room. */
  isSurplus(socket: Socket): boolean;
  cut(socket: Socket, reason: CutReason): void;
  /** Closes the connection of a response that was begun and cannot be completed, so that the client notices. */
  breakOff(res: ServerResponse): void;
  /**
   * Whether a request head is late because the gateway itself does not read (too many pipelined requests, or responses
   * that the client does not take). If so, calls `late` when the head is not there `timeoutMs` after it reads again.
   */
  excusesLateHead(socket: Socket, timeoutMs: number, late: () => void): boolean;
  /** It can carry requests: with TLS, not before that stands. */
  isOpen(socket: Socket): boolean;
  /** From now on answers end their connections, those to requests under way included. */
  endAll(): void;
  /** Closes the connections without a request, complete or partly received, and without unsent bytes. */
  closeIdle(): void;
  /**
   * Closes every connection at once, including those in a TLS handshake, which Node.js's HTTP server doesn't track. A
   * client whose response is truncated notices.
   */
  destroyAll(): void;
  close(): void;
}

export function createConnections({ limits, clock, observer }: ConnectionsOptions): Connections {
  /** In the order of their arrival. */
  const unasked = new Set<Connection>();
  /** Those that have sent a request, longest unlooked at first. */
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
      // Where most have sent nothing yet, it is they who crowd: a kept connection would be taken from a good caller.
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

  function cutConnection(connection: Connection, reason: CutReason): void {
    const { accepted, socket } = connection;
    forget(connection);
    // A reset frees what the system still holds for one that does not take it; others may get the rest of their answer.
    if (reason === 'slow_reader' && accepted === socket) accepted.resetAndDestroy();
    socket.destroy();
    accepted.destroy();
    observer.connectionCut(reason);
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

  /** One function for all answers: a closure for each would be made for each request. */
  function answered(this: ServerResponse): void {
    const connection = of(this.req.socket);
    if (connection === undefined) return;
    connection.underWay--;
    connection.hasAnswered = true;
    if (connection.newest === this) connection.newest = undefined;
    if (endsConnection(this)) connection.isEnding = true;
    if (connection.held !== undefined) startHeld(connection, connection.held);
  }

  /** Starts as many held requests as the limit allows; drops all of them on an ending connection. */
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

  /** What was read along with the requests before it is parsed already; from then on the connection is not read. */
  function hold(connection: Connection, held: Held): void {
    // As many in all as there may be connections: more than any number of sane callers brings.
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
    // Node.js reports a late head once, so the rest of the time is measured here.
    connection.lateHeadTimer = setTimeout(() => {
      if (!excusesLateHead(connection, timeoutMs, late)) late();
    }, restMs);
    return true;
  }

  const sweeping = setInterval(sweep, SWEEP_MS).unref();

  return {
    serve(server, handler) {
      handle = handler;
      // Before Node.js's own listener, which may emit what needs the state.
      server.prependListener('connection', opened);
      server.prependListener('secureConnection', secured);
      server.maxConnections = limits.connections + MOST_SURPLUS;
      // Without listeners to the latter two, Node.js would invite the body, or answer 417, before anybody saw the request.
      for (const event of ['request', 'checkContinue', 'checkExpectation']) server.on(event, take);
      server.on('drop', () => observer.connectionCut('surplus'));
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
      // A reset discards what the kernel still has to send, also of complete responses before this one. Where there are
      // any, the framing of HTTP/1.1 must do: it shows the truncation to a client that checks it (RFC 9112 §8).
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
      // An answer whose head is made has told its caller that the connection is kept: the next one ends it.
      for (const { newest } of asked) if (newest?.headersSent === false) newest.shouldKeepAlive = false;
    },
    closeIdle() {
      for (const connection of [...unasked, ...asked]) if (isIdle(connection)) connection.socket.destroy();
    },
    destroyAll() {
      for (const { socket, accepted, newest } of [...unasked, ...asked]) {
        // In HTTP/1.0 the end of the connection may be what ends the response: an orderly end would complete it.
        if (newest?.req.httpVersion === '1.0') resetSocket(socket);
        socket.destroy();
        accepted.destroy();
      }
    },
    close: () => clearInterval(sweeping),
  };
}

/** Whether Node.js ends the connection after this answer; once the head is made, it keeps that in a private field. */
function endsConnection(res: ServerResponse): boolean {
  return !res.shouldKeepAlive || (res as ServerResponse & { readonly _last?: boolean })._last === true;
}

/** What a TLS connection was accepted as. Node.js tells it only in a private field. */
function belowTls(socket: Socket): Socket {
  return (socket as Socket & { readonly _parent?: Socket })._parent ?? socket;
}

/** What the system has not taken yet of what was written last; Node.js's own idle timeout looks at it as well. */
function queuedBytes(socket: Socket): number {
  return (socket as Socket & { readonly _handle?: { readonly writeQueueSize?: number } })._handle?.writeQueueSize ?? 0;
}

/**
 * Node.js resumes a connection whenever it begins or ends with a request, so a pause alone does not last. The tick lets
 * a resumption that is under way pass first.
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
 * Reads and discards the input of a connection whose last request was received. Not through Node.js's parser, which keeps
 * an object for each request. Input that is unread at the close, or comes after it, resets the connection and discards
 * the end of the last response; so the connection is closed in two steps (RFC 9112 §9.6), not at once as Node.js does.
 */
function discardInput(socket: Socket): void {
  socket.destroySoon = () => endAndLinger(socket);
  // The parser is running: it emits the requests of one packet in one call.
  process.nextTick(() => {
    for (const listener of socket.listeners('data')) socket.off('data', listener as () => void);
    // Adding a listener makes Node.js detach its parser from the connection.
    socket.on('data', () => {});
  });
}
