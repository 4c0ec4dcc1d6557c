import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Clock } from '../clock.ts';
import { buildAnswerHeaders, isCleanReason, isFinalStatus } from './answer-head.ts';
import { type CallerWatch, cutConnection } from './caller-connection.ts';
import type { ConnectionPool, Taker } from './connection-pool.ts';
import type { Deadlines, Timed } from './deadlines.ts';
import { classifyError, InvalidAnswerError, type UpstreamFailure } from './failures.ts';
import { requestHead } from './request-head.ts';
import type { Exchange, UpstreamConnection } from './upstream-connection.ts';

export interface ForwardRequest {
  /** Origin-form path and query for the upstream, approved by the guard; sent as it is. */
  readonly path: string;
  /** Flat, in order, and complete: only Host is added, unless it is the first of them. */
  readonly headers: readonly string[];
  /** Monotonic ms after which the request must not begin upstream any more. */
  readonly beginBefore: number;
  /** The same by the wall clock: a machine that was suspended may have stopped the other one. */
  readonly beginBeforeWallMs: number;
  /**
   * The gateway's fields of the answer, flat; called when the answer's head is there. Their names must be among the
   * forwarder's `ownAnswerNames`, so that none of them comes twice.
   */
  answerHeaders(): string[];
  /** Called once, when all is over; nothing was written to the caller if the outcome is `failed` without `headSent`. */
  settled(outcome: ForwardOutcome): void;
  /** Called once instead, on a bug; the caller's connection is cut if the head was sent. */
  broken(error: unknown): void;
}

interface ForwardFacts {
  /**
   * The first byte of the request may have reached the upstream. When false, nothing was sent, and the unit of quota
   * may go back.
   */
  readonly begun: boolean;
  /** Of the upstream's answer; undefined when its head never came. */
  readonly status: number | undefined;
  /** From the request's begin to the answer's last byte, or to the end of the exchange; 0 when it never began. */
  readonly upstreamMs: number;
  /** Content of the answer that was taken from the upstream. */
  readonly contentBytes: number;
}

export type ForwardOutcome =
  /** Relayed to its end. */
  | (ForwardFacts & { readonly kind: 'answered'; readonly status: number })
  /** The caller closed its connection first; the upstream exchange was ended. */
  | (ForwardFacts & { readonly kind: 'client_gone' })
  | (ForwardFacts & {
      readonly kind: 'failed';
      readonly failure: UpstreamFailure;
      /** False: nothing was written to the caller. True: its connection was cut. */
      readonly headSent: boolean;
      /** The inner error, for the log only. */
      readonly cause: Error;
    });

/** What all exchanges of one forwarder share. */
export interface RelayContext {
  readonly pool: Pick<ConnectionPool, 'take' | 'withdraw'>;
  /** The upstream's own, for Host. */
  readonly authority: string;
  readonly deadlines: Pick<Deadlines, 'watch' | 'unwatch'>;
  readonly callers: Pick<CallerWatch, 'watch' | 'unwatch'>;
  readonly ownAnswerNames: ReadonlySet<string>;
  /** From the request's begin to the answer's head. */
  readonly responseTimeoutMs: number;
  /** For everything, the wait for a connection and a slow caller included. */
  readonly totalTimeoutMs: number;
  readonly clock: Clock;
}

/**
 * - `idle`: not started yet
 * - `waiting`: for a connection
 * - `begun`: the request goes out, no final head yet
 * - `relaying`: the head was written, content flows
 * - `received`: the upstream is done, the caller still takes the rest
 * - `over`: the outcome is known
 */
type Phase = 'idle' | 'waiting' | 'begun' | 'relaying' | 'received' | 'over';

/** Content up to here that came whole with its head is sent as text, in one write with it; beyond, text costs more. */
const MOST_TEXT_BYTES = 16 * 1024;

/** One request on its way to the upstream and its answer on the way back. */
export class Relay implements Exchange, Taker, Timed {
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly #request: ForwardRequest;
  readonly #context: RelayContext;
  readonly #totalDeadlineMs: number;
  deadlineMs = Infinity;
  #phase: Phase = 'idle';
  #path = '';
  #connection: UpstreamConnection | undefined;
  #begun = false;
  #begunAtMs = 0;
  #upstreamMs: number | undefined;
  #status: number | undefined;
  #contentBytes = 0;
  #listensForDrain = false;

  constructor(req: IncomingMessage, res: ServerResponse, request: ForwardRequest, context: RelayContext) {
    this.#req = req;
    this.#res = res;
    this.#request = request;
    this.#context = context;
    this.#totalDeadlineMs = context.clock.monotonicMs() + context.totalTimeoutMs;
  }

  get approvedPath(): string {
    return this.#request.path;
  }

  /** Sends the request for `path` as soon as there is a connection for it. */
  start(path: string): void {
    if (this.#phase !== 'idle') return;
    if (this.#req.socket.destroyed || this.#res.destroyed) {
      this.#settle({ kind: 'client_gone', ...this.#facts() });
      return;
    }
    this.#path = path;
    this.#phase = 'waiting';
    this.deadlineMs = Math.min(this.#request.beginBefore, this.#totalDeadlineMs);
    this.#context.callers.watch(this.#req.socket, this);
    this.#context.deadlines.watch(this);
    this.#context.pool.take(this);
  }

  /** Ends the exchange because of a bug, and leaves neither side hanging. */
  giveUp(error: unknown): void {
    if (this.#phase === 'over') return;
    this.#close();
    if (this.#res.headersSent) cutConnection(this.#res);
    this.#dropConnection();
    this.#request.broken(error);
  }

  onConnection(connection: UpstreamConnection): boolean {
    if (this.#phase !== 'waiting') return false;
    const { clock, authority, responseTimeoutMs } = this.#context;
    const nowMs = clock.monotonicMs();
    const isLate = nowMs >= Math.min(this.#request.beginBefore, this.#totalDeadlineMs);
    if (isLate || clock.nowMs() >= this.#request.beginBeforeWallMs) {
      this.#fail('dispatch_timeout', new Error('a connection came too late'));
      return false;
    }
    const { method = 'GET' } = this.#req;
    let head: string;
    try {
      head = requestHead(method, this.#path, authority, this.#request.headers);
    } catch (error) {
      this.giveUp(error);
      return false;
    }
    this.#phase = 'begun';
    this.#connection = connection;
    this.#begun = true;
    this.#begunAtMs = nowMs;
    this.deadlineMs = Math.min(nowMs + responseTimeoutMs, this.#totalDeadlineMs);
    connection.send(head, method === 'HEAD', this);
    return true;
  }

  onNoConnection(error: Error): void {
    this.onError(error);
  }

  onHead(status: number, reason: string, fields: string[], ended: boolean): void {
    if (this.#phase !== 'begun') return;
    if (!isFinalStatus(status)) throw new InvalidAnswerError(`status ${status}`);
    const headers = buildAnswerHeaders(fields, status, this.#context.ownAnswerNames, this.#request.answerHeaders());
    if (reason === STATUS_CODES[status] || !isCleanReason(reason)) this.#res.writeHead(status, headers);
    else this.#res.writeHead(status, reason, headers);
    this.#status = status;
    this.#phase = 'relaying';
    this.deadlineMs = this.#totalDeadlineMs;
    if (ended) this.#received(undefined);
  }

  onContent(bytes: Buffer, start: number, end: number, ended: boolean): void {
    if (this.#phase !== 'relaying') return;
    const length = end - start;
    const isFirst = this.#contentBytes === 0;
    this.#contentBytes += length;
    if (ended && isFirst && length <= MOST_TEXT_BYTES) {
      this.#received(bytes.toString('latin1', start, end));
      return;
    }
    const mayGoOn = length === 0 || this.#res.write(Buffer.from(bytes.subarray(start, end)));
    if (ended) {
      this.#received(undefined);
    } else if (!mayGoOn) {
      this.#connection?.pause();
      this.#listenForDrain();
    }
  }

  /** Content that came along with the head goes out in one write with it; a head that came alone does not wait. */
  onPause(): void {
    if (this.#phase === 'relaying' && this.#contentBytes === 0) this.#res.flushHeaders();
  }

  onError(error: unknown): void {
    this.#connection = undefined;
    if (this.#phase === 'over') return;
    const failure = classifyError(error, this.#begun);
    if (failure === undefined || !(error instanceof Error)) this.giveUp(error);
    else this.#fail(failure, error);
  }

  onCallerGone(): void {
    if (this.#phase === 'over') return;
    this.#settle({ kind: 'client_gone', ...this.#facts() });
    this.#dropConnection();
  }

  onDeadline(): void {
    switch (this.#phase) {
      case 'waiting':
        this.#fail('dispatch_timeout', new Error('no connection became free in time'));
        break;
      case 'begun': {
        const total = this.#context.clock.monotonicMs() >= this.#totalDeadlineMs;
        this.#fail(total ? 'total_timeout' : 'response_timeout', new Error('the head of the answer is late'));
        break;
      }
      case 'relaying':
        this.#fail('total_timeout', new Error('the end of the answer is late'));
        break;
      case 'received':
        this.#fail('total_timeout', new Error('the caller is too slow'));
        break;
    }
  }

  /** The upstream is done; `rest` is what of its content was not written yet, each character a byte. */
  #received(rest: string | undefined): void {
    this.#connection = undefined;
    this.#phase = 'received';
    this.#upstreamMs = this.#sinceBegun();
    const res = this.#res;
    if (rest === undefined) res.end();
    else res.end(rest, 'latin1');
    // Mostly the kernel has taken all of it by now, and the listener is not needed.
    if (res.socket !== null && res.writableLength === 0) this.#finished();
    else res.once('finish', () => this.#finished());
  }

  #finished(): void {
    if (this.#phase !== 'received' || this.#status === undefined) return;
    this.#settle({ kind: 'answered', ...this.#facts(), status: this.#status });
  }

  #listenForDrain(): void {
    if (this.#listensForDrain) return;
    this.#listensForDrain = true;
    this.#res.on('drain', this.#onDrain);
  }

  readonly #onDrain = (): void => {
    this.#connection?.resume();
  };

  #fail(failure: UpstreamFailure, cause: Error): void {
    const headSent = this.#res.headersSent;
    if (headSent) cutConnection(this.#res);
    this.#dropConnection();
    this.#settle({ kind: 'failed', failure, headSent, cause, ...this.#facts() });
  }

  #settle(outcome: ForwardOutcome): void {
    this.#close();
    try {
      this.#request.settled(outcome);
    } catch (error) {
      this.#request.broken(error);
    }
  }

  #close(): void {
    if (this.#phase === 'waiting') this.#context.pool.withdraw(this);
    if (this.#phase !== 'idle') {
      this.#context.deadlines.unwatch(this);
      this.#context.callers.unwatch(this.#req.socket, this);
    }
    this.#phase = 'over';
    if (this.#listensForDrain) this.#res.off('drain', this.#onDrain);
  }

  /** Nothing of an answer that nobody waits for is read; the connection is lost with it. */
  #dropConnection(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    connection?.destroy();
  }

  #sinceBegun(): number {
    return this.#begun ? this.#context.clock.monotonicMs() - this.#begunAtMs : 0;
  }

  #facts(): ForwardFacts {
    return {
      begun: this.#begun,
      status: this.#status,
      upstreamMs: this.#upstreamMs ?? this.#sinceBegun(),
      contentBytes: this.#contentBytes,
    };
  }
}
