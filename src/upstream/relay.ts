import type { ServerResponse } from 'node:http';
import type { Clock } from '../base/clock.ts';
import { atEndOfTurn, type TurnEndListener } from '../base/end-of-turn.ts';
import { unwatchDisconnect, watchDisconnect } from './client-disconnect.ts';
import type { Deadlines, Timed } from './deadlines.ts';
import { classifyError, type UpstreamFailure } from './failures.ts';
import type { Destination, ForwardHandlers, ForwardOutcome, ForwardRequest } from './forward-request.ts';
import { SHARE_EXCEEDED } from './http1/connection-pool.ts';
import type { ConnectionRequest } from './http1/request-queue.ts';
import {
  headerLineOf,
  type ResponseHandler,
  requestHead,
  type UpstreamConnection,
} from './http1/upstream-connection.ts';
import type { BodyConsumer, BodyFault } from './request-body.ts';
import { type createResponseFilter, writeResponseHead } from './response-headers.ts';
import type { Upstream } from './upstream.ts';

/** What all requests of one forwarder share. */
export interface RelayParts {
  readonly deadlines: Pick<Deadlines, 'watch' | 'unwatch'>;
  /** See {@link createResponseFilter}. */
  readonly passedLines: ReturnType<typeof createResponseFilter>;
  readonly clock: Clock;
}

/**
 * - `idle`: not started
 * - `waiting`: for a connection
 * - `dispatched`: handed to a connection, no final response head yet
 * - `relaying`: the response head was written to the client, the body follows
 * - `received`: the upstream's response is complete, the client has not received all of it
 * - `ended`: the outcome is known
 */
type Phase = 'idle' | 'waiting' | 'dispatched' | 'relaying' | 'received' | 'ended';

/** Created once: a flood of requests while no upstream is in service must cost little. */
const NONE_AVAILABLE = new Error('no upstream is in service');

/**
 * Up to this size, what was read of a body is sent as a string, and a whole body together with the head. A longer string costs
 * more than bytes that stay where they are.
 */
const MAX_TEXT_BYTES = 16 * 1024;

const traceparentLine = headerLineOf('traceparent');

const REPEATABLE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Sends one request to the upstream and relays its response to the client. */
export class Relay implements ResponseHandler, ConnectionRequest, BodyConsumer, Timed, TurnEndListener {
  readonly #res: ServerResponse;
  readonly #request: ForwardRequest;
  readonly #destination: Destination;
  readonly #handlers: ForwardHandlers<ForwardRequest>;
  readonly #parts: RelayParts;
  #totalDeadlineMs = 0;
  /** See {@link ConnectionRequest.isRepeatable}: GET, HEAD or OPTIONS without a body (RFC 9110 §9.2.2). */
  readonly isRepeatable: boolean;
  deadlineMs = Infinity;
  watchedAt: number | undefined;
  previous: ConnectionRequest | undefined;
  next: ConnectionRequest | undefined;
  queue: ConnectionRequest['queue'];
  share: ConnectionRequest['share'];
  #phase: Phase = 'idle';
  #upstream: Upstream | undefined;
  #connection: UpstreamConnection | undefined;
  #isRetry = false;
  /** Whether the request was written to the latest connection. */
  #wasWritten = false;
  /** Failure of a first attempt that had been handed to a connection. */
  #firstFailure: { readonly failure: UpstreamFailure; readonly cause: Error } | undefined;
  /** The client has not taken what was written of the response. */
  #isClientBehind = false;
  /** Bytes of the body that the upstream had not taken at the last check. */
  #unacceptedBytes = 0;
  /** When the request was first sent. */
  #sentAtMs: number | undefined;
  #upstreamMs: number | undefined;
  #status: number | undefined;
  #contentBytes = 0;
  /** Whether the client gets the body in chunks, as opposed to a known length or until its connection is closed. */
  #isChunked = false;
  /** The part of the response's body that is not written yet, as Latin-1. */
  #rest = '';

  constructor(
    request: ForwardRequest,
    destination: Destination,
    handlers: ForwardHandlers<ForwardRequest>,
    parts: RelayParts,
  ) {
    this.#res = request.res;
    this.#request = request;
    this.#destination = destination;
    this.#handlers = handlers;
    this.#parts = parts;
    this.isRepeatable = request.body === undefined && REPEATABLE.has(request.req.method ?? '');
    this.#restartTotal();
  }

  get customer(): string {
    const { customer, keylessBlock } = this.#request;
    // No customer has a slash in its id.
    return keylessBlock === undefined ? (customer ?? '') : `/${keylessBlock}`;
  }

  get isKeyless(): boolean {
    return this.#request.keylessBlock !== undefined;
  }

  /** Sends the request as soon as a connection is free. */
  start(): void {
    if (this.#phase !== 'idle') return;
    if (this.#request.req.socket.destroyed || this.#res.destroyed) {
      this.#end(this.#facts('client_gone', this.#status));
      return;
    }
    this.#phase = 'waiting';
    watchDisconnect(this.#request.req.socket, this);
    this.#parts.deadlines.watch(this);
    const { body } = this.#request;
    body?.attach(this);
    if (body?.fault !== undefined) {
      this.onBodyFault(body.fault);
      return;
    }
    const { backend } = this.#destination;
    backend.countRequest();
    const upstream = backend.choose();
    if (upstream === undefined) this.#fail('none_available', NONE_AVAILABLE);
    else this.#requestConnection(upstream, false);
  }

  /** Aborts the request because of a bug, and leaves neither side hanging. */
  abort(error: unknown): void {
    if (this.#phase === 'ended') return;
    this.#close();
    this.#dropConnection();
    this.#handlers.onBug(this.#request, error);
  }

  onConnection(connection: UpstreamConnection): boolean {
    if (this.#phase !== 'waiting') return false;
    if (!this.#mayBegin(this.#parts.clock.monotonicMs())) {
      this.#fail('dispatch_timeout', new Error('a connection became free after the deadline'));
      return false;
    }
    const { method = 'GET' } = this.#request.req;
    const { path, host, headers, body, trace } = this.#request;
    const { basePath = '', authority = '' } = this.#upstream ?? {};
    let head: string;
    try {
      const lines = trace === undefined ? headers : headers + traceparentLine(trace.traceparent);
      head = requestHead(method, basePath + path, host ?? authority, lines);
    } catch (error) {
      this.abort(error);
      return false;
    }
    this.#phase = 'dispatched';
    this.#connection = connection;
    this.#wasWritten = false;
    this.#setDeadline();
    const framing = body && (body.length === undefined ? 'chunked' : 'length');
    connection.send(head, method === 'HEAD', this, framing);
    return true;
  }

  /** Checks the deadlines again: a turn of the event loop may be long, and the machine may be suspended in it. */
  onSend(): boolean {
    const nowMs = this.#parts.clock.monotonicMs();
    if (this.#mayBegin(nowMs)) {
      this.#sentAtMs ??= nowMs;
      this.#wasWritten = true;
      this.#request.body?.flow();
      return true;
    }
    this.#fail('dispatch_timeout', new Error('the deadline passed before the request could be sent'));
    return false;
  }

  onHead(status: number, reason: string, lines: string, contentLength: string | undefined, ended: boolean): void {
    if (this.#phase !== 'dispatched') return;
    const passed =
      this.#parts.passedLines(lines, status, this.#request.replacedLines) + this.#handlers.responseLines(this.#request);
    // The client is still sending: what follows the response is no request.
    if (this.#isUploading) this.#res.shouldKeepAlive = false;
    this.#isChunked = writeResponseHead(this.#res, status, reason, passed, status === 204 ? undefined : contentLength);
    this.#status = status;
    this.#phase = 'relaying';
    this.#setDeadline();
    if (ended) this.#received('');
  }

  onContent(bytes: Buffer, start: number, end: number, ended: boolean): void {
    if (this.#phase !== 'relaying') return;
    const length = end - start;
    const isFirst = this.#contentBytes === 0;
    this.#contentBytes += length;
    const isText = length <= MAX_TEXT_BYTES;
    if (ended && isFirst && isText) {
      this.#received(this.#framed(bytes.toString('latin1', start, end)));
      return;
    }
    const isTaken =
      length === 0 ||
      (isText ? this.#writeText(bytes.toString('latin1', start, end)) : this.#writeBytes(bytes.subarray(start, end)));
    if (ended) {
      if (!isTaken && !isText) this.#connection?.keepBytes();
      this.#received('');
      return;
    }
    if (!isTaken) {
      this.#isClientBehind = true;
      this.#connection?.pause();
    }
    if (!this.#isUploading) this.#setDeadline();
  }

  /** A piece of the body as the client gets it: a chunk (RFC 9112 §7.1), unless the length is known. */
  #framed(text: string): string {
    return this.#isChunked && text !== '' ? `${text.length.toString(16)}\r\n${text}\r\n` : text;
  }

  /** Returns whether there is room for more. */
  #writeText(text: string): boolean {
    const hasRoom = this.#res.write(this.#framed(text), 'latin1');
    if (!hasRoom) this.#res.once('drain', () => this.#onTaken());
    return hasRoom;
  }

  /** Writes bytes where they are, at once. Returns whether the kernel has taken them; else they are needed until it has. */
  #writeBytes(bytes: Buffer): boolean {
    const res = this.#res;
    const onTaken = () => this.#onTaken();
    const { socket } = res;
    socket?.cork();
    if (this.#isChunked) {
      res.write(`${bytes.length.toString(16)}\r\n`, 'latin1');
      res.write(bytes);
      res.write('\r\n', 'latin1', onTaken);
    } else res.write(bytes, onTaken);
    socket?.uncork();
    return res.writableLength === 0;
  }

  /** The client has taken something. */
  #onTaken(): void {
    if (!this.#isClientBehind || this.#res.writableLength > 0) return;
    this.#isClientBehind = false;
    this.#connection?.resume();
    if (this.#phase === 'relaying' && !this.#isUploading) this.#setDeadline();
  }

  /** Body bytes that arrive with the head are sent in one write with it. A head that arrives alone is sent at once. */
  onPause(): void {
    // Not flushHeaders(): it writes the head as UTF-8, which turns each non-ASCII byte into two.
    if (this.#phase === 'relaying' && this.#contentBytes === 0) this.#res.write('', 'latin1');
  }

  onBodyBytes(bytes: Buffer): void {
    this.#connection?.sendContent(bytes);
  }

  onBodyEnd(): void {
    if (this.#phase !== 'dispatched' && this.#phase !== 'relaying') return;
    this.#restartTotal();
    this.#setDeadline();
    this.#connection?.endContent();
  }

  onBodyFault(fault: BodyFault): void {
    if (fault === 'aborted') this.onClientGone();
    else if (this.#phase !== 'ended') this.#fail(fault, new Error(`the request body ended early: ${fault}`));
  }

  onCongested(): void {
    this.#request.body?.pause();
    this.#unacceptedBytes = Infinity;
    this.onBodyHeldUp();
  }

  /** Extends the deadline if the upstream has taken more of the body, and returns whether it has. */
  onBodyHeldUp(): boolean {
    const { unacceptedBytes = 0 } = this.#connection ?? {};
    const isTaking = unacceptedBytes < this.#unacceptedBytes;
    this.#unacceptedBytes = unacceptedBytes;
    if (isTaking) this.#setDeadline();
    return isTaking;
  }

  onDrained(): void {
    this.#request.body?.resume();
    this.#setDeadline();
  }

  onError(error: unknown): void {
    const connection = this.#connection;
    this.#connection = undefined;
    if (this.#phase === 'ended') return;
    const failure = classifyError(error, connection !== undefined);
    if (failure === undefined || !(error instanceof Error)) {
      this.abort(error);
      return;
    }
    // Not the upstream's failure: it may close a kept connection at any time (RFC 9112 §9.5).
    const wasStale = failure === 'reset' && connection?.isReused === true && !connection.hasResponded;
    if (connection !== undefined && !wasStale) this.#upstream?.failed(error.message);
    if (!this.#retry(failure, error, connection, wasStale)) this.#fail(failure, error);
  }

  onClientGone(): void {
    if (this.#phase === 'ended') return;
    this.#end(this.#facts('client_gone', this.#status));
    this.#dropConnection();
  }

  onDeadline(): void {
    if (this.#request.body?.isHeldUp && this.onBodyHeldUp()) {
      this.#parts.deadlines.watch(this);
      return;
    }
    switch (this.#phase) {
      case 'waiting':
        if (this.#upstream?.pool.isBeyondShare(this)) this.#fail('share_exceeded', SHARE_EXCEEDED);
        else this.#fail('dispatch_timeout', new Error('no connection became free in time'));
        break;
      case 'dispatched': {
        const total = !this.#isUploading && this.#parts.clock.monotonicMs() >= this.#totalDeadlineMs;
        if (!total) this.#upstream?.failed('the head of a response was late');
        this.#fail(total ? 'total_timeout' : 'response_timeout', new Error('the head of the response is late'));
        break;
      }
      case 'relaying': {
        const total = this.#parts.clock.monotonicMs() >= this.#totalDeadlineMs;
        this.#fail(total ? 'total_timeout' : 'idle_timeout', new Error('more of the response is late'));
        break;
      }
      case 'received':
        this.#fail('total_timeout', new Error('the client reads too slowly'));
        break;
    }
  }

  /** The upstream's response is complete. `rest`: see {@link #rest}. */
  #received(rest: string): void {
    this.#connection = undefined;
    this.#phase = 'received';
    this.#request.trace?.attemptEnded(this.#status, undefined);
    if (this.#isUploading) {
      this.#request.body?.detach();
      this.#restartTotal();
    }
    this.deadlineMs = this.#totalDeadlineMs;
    this.#upstreamMs = this.#sinceSentMs();
    this.#upstream?.responded(this.#status ?? 0);
    this.#rest = this.#isChunked ? `${rest}0\r\n\r\n` : rest;
    atEndOfTurn(this);
  }

  /** Ends the response. At the end of the turn of the event loop, for the reason given at {@link UpstreamConnection}. */
  onTurnEnd(): void {
    if (this.#phase !== 'received') return;
    const res = this.#res;
    if (this.#rest === '') res.end();
    else res.end(this.#rest, 'latin1');
    // Usually the kernel has taken everything by now, and the listener is not needed.
    if (res.socket !== null && res.writableLength === 0) this.#finished();
    else res.once('finish', () => this.#finished());
  }

  #finished(): void {
    if (this.#phase !== 'received' || this.#status === undefined) return;
    this.#end(this.#facts('completed', this.#status));
  }

  #fail(failure: UpstreamFailure, cause: Error): void {
    const headSent = this.#res.headersSent;
    this.#request.trace?.attemptEnded(this.#status, failure);
    this.#dropConnection();
    // If the retry never started, report the first attempt's failure: that one was sent and counted.
    const reported = (this.#phase === 'waiting' && this.#firstFailure) || { failure, cause };
    this.#end({ ...this.#facts('failed', this.#status), ...reported, headSent });
  }

  /** `mustBeNew`: see {@link ConnectionPool.take}. */
  #requestConnection(upstream: Upstream, mustBeNew: boolean): void {
    const { responseTimeoutMs } = this.#destination;
    const { beginDeadlineMs } = this.#request;
    // A request that no quota limits (`store.on_error: allow`) has no deadline of its own.
    const isUnlimited = beginDeadlineMs === Infinity;
    const waitsUntilMs = isUnlimited ? this.#parts.clock.monotonicMs() + responseTimeoutMs : beginDeadlineMs;
    this.deadlineMs = Math.min(waitsUntilMs, this.#totalDeadlineMs);
    this.#upstream = upstream;
    this.#request.trace?.attemptStarted(upstream);
    upstream.pool.take(this, mustBeNew);
  }

  /** Returns whether the request may still be sent: its quota unit is valid only until `beginDeadlineMs`. */
  #mayBegin(nowMs: number): boolean {
    const { beginDeadlineMs, beginDeadlineWallMs } = this.#request;
    return nowMs < beginDeadlineMs && nowMs < this.#totalDeadlineMs && this.#parts.clock.nowMs() < beginDeadlineWallMs;
  }

  /**
   * Sends the request once more if no byte of a response has arrived, and if it may be repeated or was not written. The
   * retry goes to another upstream if one is in service, and to the same one only if that closed or reset a connection,
   * even one that was still being made. If a kept connection closed before the request was written, sending it is not
   * counted as a retry. Returns false if the request is not sent again.
   */
  #retry(
    failure: UpstreamFailure,
    cause: Error,
    connection: UpstreamConnection | undefined,
    wasStale: boolean,
  ): boolean {
    const { backend } = this.#destination;
    if (this.#isRetry || (this.#phase !== 'waiting' && this.#phase !== 'dispatched')) return false;
    if (this.#wasWritten && !this.isRepeatable) return false;
    if (connection?.hasResponded === true || failure === 'share_exceeded') return false;
    const wasClosed = connection !== undefined || ('code' in cause && cause.code === 'ECONNRESET');
    const next = backend.chooseOther(this.#upstream) ?? (wasClosed ? backend.choose() : undefined);
    if (next === undefined || !this.#mayBegin(this.#parts.clock.monotonicMs())) return false;
    if (this.#wasWritten || !wasStale) {
      if (!backend.mayRetry(wasStale)) return false;
      this.#request.trace?.attemptEnded(undefined, failure);
      this.#isRetry = true;
      if (connection !== undefined) this.#firstFailure = { failure, cause };
    }
    this.#phase = 'waiting';
    this.#requestConnection(next, true);
    return true;
  }

  get #isUploading(): boolean {
    return this.#request.body?.isComplete === false;
  }

  #restartTotal(): void {
    this.#totalDeadlineMs = this.#parts.clock.monotonicMs() + (this.#destination.totalTimeoutMs ?? Infinity);
  }

  /**
   * Sets the deadline of a request that was handed to a connection. While its body arrives there is none, unless the
   * upstream takes none of it: the body itself watches the progress of the client.
   */
  #setDeadline(): void {
    const { idleTimeoutMs, responseTimeoutMs } = this.#destination;
    const isUploading = this.#isUploading;
    const waitsForClient = isUploading ? this.#request.body?.isHeldUp === false : this.#isClientBehind;
    const waitMs = this.#phase === 'dispatched' ? responseTimeoutMs : idleTimeoutMs;
    this.deadlineMs = Math.min(
      waitsForClient ? Infinity : this.#parts.clock.monotonicMs() + waitMs,
      isUploading ? Infinity : this.#totalDeadlineMs,
    );
  }

  #end(outcome: ForwardOutcome): void {
    this.#close();
    try {
      this.#handlers.onOutcome(this.#request, outcome);
    } catch (error) {
      this.#handlers.onBug(this.#request, error);
    }
  }

  #close(): void {
    if (this.#phase === 'waiting') this.#upstream?.pool.withdraw(this);
    if (this.#phase !== 'idle') {
      this.#parts.deadlines.unwatch(this);
      unwatchDisconnect(this.#request.req.socket, this);
      this.#request.body?.detach();
    }
    this.#phase = 'ended';
  }

  /** Closes the connection: the rest of its response is not read, so it cannot carry another request. */
  #dropConnection(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    connection?.destroy();
  }

  #sinceSentMs(): number {
    return this.#sentAtMs === undefined ? 0 : this.#parts.clock.monotonicMs() - this.#sentAtMs;
  }

  #facts<Kind extends string, Status>(kind: Kind, status: Status) {
    return {
      kind,
      wasSent: this.#sentAtMs !== undefined,
      status,
      upstreamMs: this.#upstreamMs ?? this.#sinceSentMs(),
      upstream: this.#upstream?.name,
      contentBytes: this.#contentBytes,
    };
  }
}
