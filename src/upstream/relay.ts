import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Dispatcher } from 'undici';
import type { Clock } from '../clock.ts';
import { buildAnswerHeaders, cleanReason, isFinalStatus, isInterimStatus } from './answer-head.ts';
import { type CallerWatch, cutConnection } from './caller-connection.ts';
import type { ConnectionSlots } from './connection-slots.ts';
import { Deadline } from './deadline.ts';
import { classifyError, InvalidAnswerError, type UpstreamFailure } from './failures.ts';

export interface ForwardRequest {
  /** Origin-form path and query for the upstream, approved by the guard; sent as it is. */
  readonly path: string;
  /** Flat, in order, and complete: only Host (unless it is among them) and the connection's own fields are added. */
  readonly headers: string[];
  /** Monotonic ms after which the request must not begin upstream any more. */
  readonly beginBefore: number;
  /** The same by the wall clock: a machine that was suspended may have stopped the other one. */
  readonly beginBeforeWallMs: number;
  /**
   * The gateway's fields of the answer, flat; called when the answer's head is there. Their names must be among the
   * forwarder's `ownAnswerNames`, so that none of them comes twice.
   */
  answerHeaders(): string[];
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
  readonly pool: Dispatcher;
  /** The name that TLS expects; undefined without TLS and for addresses. */
  readonly servername: string | undefined;
  readonly slots: ConnectionSlots;
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
 * - `queued`: waits for a slot
 * - `dispatched`: has its slot; undici connects or is about to write
 * - `begun`: the request goes out, no final head yet
 * - `relaying`: the head was written, content flows
 * - `received`: the upstream is done, the caller still takes the rest
 * - `over`: the outcome is known; undici may still hold the slot
 */
type Phase = 'idle' | 'queued' | 'dispatched' | 'begun' | 'relaying' | 'received' | 'over';

/**
 * One request on its way to the upstream and its answer on the way back, as a handler of undici's dispatch.
 *
 * Once a slot is taken, undici ends the exchange by exactly one call of `onResponseEnd` or `onResponseError`; the slot
 * is released there and nowhere else. The outcome may be known earlier: a caller that leaves while undici connects is
 * done with, while its slot stays taken until undici lets go. The promise settles outside of undici's stack.
 */
export class Relay implements Dispatcher.DispatchHandler {
  readonly outcome: Promise<ForwardOutcome>;
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly #request: ForwardRequest;
  readonly #context: RelayContext;
  readonly #deadline: Deadline;
  readonly #totalDeadlineMs: number;
  #resolve: (outcome: ForwardOutcome) => void = () => {};
  #reject: (error: unknown) => void = () => {};
  #phase: Phase = 'idle';
  #path = '';
  #controller: Dispatcher.DispatchController | undefined;
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
    this.#deadline = new Deadline(context.clock, this.#onDeadline);
    this.outcome = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
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
    this.#phase = 'queued';
    this.#context.callers.watch(this.#req.socket, this.#onCallerGone);
    this.#deadline.set(Math.min(this.#request.beginBefore, this.#totalDeadlineMs));
    this.#context.slots.acquire(this.#dispatch);
  }

  /** Ends the exchange because of a bug: rejects with `error`, and leaves neither side hanging. */
  giveUp(error: unknown): void {
    if (this.#phase === 'over') return;
    this.#close();
    if (this.#res.headersSent) cutConnection(this.#res);
    this.#reject(error);
    this.#abortUpstream('given up');
  }

  readonly #dispatch = (): void => {
    this.#phase = 'dispatched';
    const { method = 'GET' } = this.#req;
    const { servername } = this.#context;
    const options = { path: this.#path, method, headers: this.#request.headers, servername };
    this.#context.pool.dispatch(options, this);
  };

  /** undici is about to write the request. What is thrown here keeps it from doing so, and keeps the connection. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#phase === 'over') throw new Error('the exchange is over');
    const { clock } = this.#context;
    const nowMs = clock.monotonicMs();
    const isLate = nowMs >= Math.min(this.#request.beginBefore, this.#totalDeadlineMs);
    if (isLate || clock.nowMs() >= this.#request.beginBeforeWallMs) {
      this.#fail('dispatch_timeout', new Error('a connection came too late'));
      throw new Error('too late to begin');
    }
    this.#phase = 'begun';
    this.#controller = controller;
    this.#begun = true;
    this.#begunAtMs = nowMs;
    this.#deadline.set(Math.min(nowMs + this.#context.responseTimeoutMs, this.#totalDeadlineMs));
  }

  /** What is thrown here makes undici drop the connection and call `onResponseError`. */
  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    _headers: unknown,
    statusText?: string,
  ): void {
    if (isInterimStatus(status)) return; // RFC 9110 §15.2: a final answer follows
    if (!isFinalStatus(status)) throw new InvalidAnswerError(`status ${status}`);
    const raw = controller.rawHeaders;
    if (!Array.isArray(raw)) throw new Error('undici gave no raw header fields');
    const own = this.#request.answerHeaders();
    const headers = buildAnswerHeaders(raw, status, this.#context.ownAnswerNames, own);
    const reason = cleanReason(statusText);
    if (reason === undefined) this.#res.writeHead(status, headers);
    else this.#res.writeHead(status, reason, headers);
    this.#status = status;
    this.#phase = 'relaying';
    this.#deadline.set(this.#totalDeadlineMs);
    // Content that came along with the head goes out in one write with it; a head that came alone does not wait.
    queueMicrotask(() => {
      if (this.#phase === 'relaying' && this.#contentBytes === 0) this.#res.flushHeaders();
    });
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#contentBytes += chunk.length;
    if (this.#res.write(chunk)) return;
    controller.pause();
    if (this.#listensForDrain) return;
    this.#listensForDrain = true;
    this.#res.on('drain', this.#onDrain);
  }

  onResponseEnd(): void {
    this.#context.slots.release();
    this.#controller = undefined;
    if (this.#phase !== 'relaying') return;
    this.#phase = 'received';
    this.#upstreamMs = this.#sinceBegun();
    this.#res.end(this.#onFinish);
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#context.slots.release();
    this.#controller = undefined;
    if (this.#phase === 'over') return;
    const failure = classifyError(error, this.#begun);
    if (failure === undefined) this.giveUp(error);
    else this.#fail(failure, error);
  }

  readonly #onDrain = (): void => {
    this.#controller?.resume();
  };

  readonly #onFinish = (): void => {
    if (this.#phase !== 'received' || this.#status === undefined) return;
    this.#settle({ kind: 'answered', ...this.#facts(), status: this.#status });
  };

  readonly #onCallerGone = (): void => {
    if (this.#phase === 'over') return;
    this.#settle({ kind: 'client_gone', ...this.#facts() });
    this.#abortUpstream('the caller is gone');
  };

  readonly #onDeadline = (): void => {
    switch (this.#phase) {
      case 'queued':
      case 'dispatched':
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
  };

  #fail(failure: UpstreamFailure, cause: Error): void {
    const headSent = this.#res.headersSent;
    this.#settle({ kind: 'failed', failure, headSent, cause, ...this.#facts() });
    if (headSent) cutConnection(this.#res);
    this.#abortUpstream(failure);
  }

  #settle(outcome: ForwardOutcome): void {
    this.#close();
    this.#resolve(outcome);
  }

  #close(): void {
    if (this.#phase === 'queued') this.#context.slots.withdraw(this.#dispatch);
    this.#phase = 'over';
    this.#deadline.clear();
    this.#context.callers.unwatch(this.#req.socket, this.#onCallerGone);
    if (this.#listensForDrain) this.#res.off('drain', this.#onDrain);
  }

  /** Also when it is paused: undici then destroys the connection and calls `onResponseError`, which frees the slot. */
  #abortUpstream(reason: string): void {
    this.#controller?.abort(new Error(reason));
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
