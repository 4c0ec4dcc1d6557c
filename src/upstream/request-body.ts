import type { IncomingMessage } from 'node:http';
import type { Clock } from '../base/clock.ts';
import type { Deadlines, Timed } from './deadlines.ts';
import type { UpstreamFailure } from './failures.ts';

/** Why the rest of a body is not forwarded. `aborted`: the client closed its connection. */
export type BodyFault = Extract<UpstreamFailure, `body_${string}`> | 'aborted';

/** Receives a body after {@link RequestBody.attach}. */
export interface BodyConsumer {
  /** The bytes are the consumer's: nothing else reads or writes them. */
  onBodyBytes(bytes: Buffer): void;
  onBodyEnd(): void;
  /** No more bytes follow. */
  onBodyFault(fault: BodyFault): void;
}

interface RequestBodyOptions {
  /** A longer body is a fault. */
  readonly maxBytes: number;
  /** A client that sends no byte for this long is a fault. */
  readonly stallTimeoutMs: number;
  readonly deadlines: Pick<Deadlines, 'watch' | 'unwatch'>;
  readonly clock: Clock;
}

/** Read before the request takes quota and a connection: a slow small upload occupies neither. A read is kept whole. */
const BUFFERED_BYTES = 16 * 1024;
/** After the first minute, a client must have sent this many bytes for each second in which they were read. */
const MIN_BYTES_PER_SECOND = 500;
const RATE_GRACE_MS = 60_000;
const RATE_CHECK_MS = 1_000;

/** Property of a request: its body, or that the rest of the body cannot be parsed. */
const BODY = Symbol('body');
type RequestWithBody = IncomingMessage & { [BODY]?: RequestBody | 'malformed' };

/** Ends the body of `req` as malformed: its framing is invalid, or the client ended its side of the connection. */
export function failBody(req: RequestWithBody): void {
  if (req[BODY] instanceof RequestBody) req[BODY].fail('body_malformed');
  else req[BODY] = 'malformed';
}

/** The body of a client's request: first buffered up to {@link BUFFERED_BYTES}, then passed on as it arrives. */
export class RequestBody implements Timed {
  deadlineMs = Infinity;
  watchedAt: number | undefined;
  receivedBytes = 0;
  /** All of the body has arrived. */
  isComplete = false;
  fault: BodyFault | undefined;
  /** How long the client took to send what was buffered. */
  bufferingMs = 0;
  /** Undefined: it is chunked, both as received and as sent. */
  readonly length: number | undefined;
  readonly #req: IncomingMessage;
  readonly #options: RequestBodyOptions;
  /** What has arrived and was not passed on; undefined once {@link flow} was called. */
  #buffered: Buffer[] | undefined = [];
  #onBuffered: ((fault: BodyFault | undefined) => void) | undefined;
  #consumer: BodyConsumer | undefined;
  /** Monotonic ms, as are the following. */
  #bufferedByMs = Infinity;
  /** Moved forward by the time in which the gateway did not read. */
  #readingSinceMs = 0;
  #lastByteAtMs = 0;
  #pausedAtMs: number | undefined;

  constructor(req: RequestWithBody, length: number | undefined, options: RequestBodyOptions) {
    this.#req = req;
    this.length = length;
    this.#options = options;
    if (req[BODY] === 'malformed') this.fault = 'body_malformed';
    req[BODY] = this;
  }

  /**
   * Reads the beginning of the body. Resolves, with reading paused, when the body is complete or {@link BUFFERED_BYTES} have
   * arrived; with a fault if neither happens by `deadlineMs` (monotonic).
   */
  buffer(deadlineMs: number): Promise<BodyFault | undefined> {
    // A destroyed request emits nothing any more.
    if (this.#req.destroyed) this.fault ??= 'aborted';
    if (this.fault !== undefined) return Promise.resolve(this.fault);
    const { promise, resolve } = Promise.withResolvers<BodyFault | undefined>();
    this.#onBuffered = resolve;
    this.#bufferedByMs = deadlineMs;
    const nowMs = this.#options.clock.monotonicMs();
    this.#readingSinceMs = nowMs;
    this.#lastByteAtMs = nowMs;
    this.#watchProgress(nowMs);
    this.#req.on('data', this.#onData);
    this.#req.on('end', this.#onEnd);
    this.#req.on('error', this.#onAborted);
    return promise;
  }

  /** From now on, `consumer` is notified of faults, and after {@link flow} of everything else. */
  attach(consumer: BodyConsumer): void {
    this.#consumer = consumer;
  }

  /** Passes what is buffered to the consumer, then the rest as it arrives. */
  flow(): void {
    const consumer = this.#consumer;
    const buffered = this.#buffered ?? [];
    this.#buffered = undefined;
    for (const bytes of buffered) consumer?.onBodyBytes(bytes);
    if (this.isComplete) consumer?.onBodyEnd();
    else this.resume();
  }

  /** Stops reading: the consumer cannot take more at present. */
  pause(): void {
    if (this.#pausedAtMs !== undefined || this.isComplete) return;
    this.#pausedAtMs = this.#options.clock.monotonicMs();
    this.#options.deadlines.unwatch(this);
    this.#req.pause();
  }

  resume(): void {
    if (this.#pausedAtMs === undefined || this.fault !== undefined) return;
    const nowMs = this.#options.clock.monotonicMs();
    this.#readingSinceMs += nowMs - this.#pausedAtMs;
    this.#pausedAtMs = undefined;
    this.#lastByteAtMs = nowMs;
    this.#watchProgress(nowMs);
    this.#req.resume();
  }

  /** Leaves the rest unread: nobody needs it any more. */
  detach(): void {
    this.#consumer = undefined;
    this.#buffered = undefined;
    this.pause();
  }

  /** Ends the body because of a fault, unless it has already ended. */
  fail(fault: BodyFault): void {
    if (this.isComplete || this.fault !== undefined) return;
    this.pause();
    this.fault = fault;
    this.#settleBuffering(fault);
    this.#consumer?.onBodyFault(fault);
  }

  onDeadline(): void {
    const nowMs = this.#options.clock.monotonicMs();
    const isStalled = nowMs - this.#lastByteAtMs >= this.#options.stallTimeoutMs;
    const readingMs = nowMs - this.#readingSinceMs;
    const isTooSlow = readingMs >= RATE_GRACE_MS && this.receivedBytes * 1000 < MIN_BYTES_PER_SECOND * readingMs;
    if (nowMs >= this.#bufferedByMs || isStalled || isTooSlow) this.fail('body_timeout');
    else this.#watchProgress(nowMs);
  }

  #watchProgress(nowMs: number): void {
    const stallsAtMs = this.#lastByteAtMs + this.#options.stallTimeoutMs;
    const rateCheckAtMs = Math.max(this.#readingSinceMs + RATE_GRACE_MS, nowMs + RATE_CHECK_MS);
    this.deadlineMs = Math.min(this.#bufferedByMs, stallsAtMs, rateCheckAtMs);
    this.#options.deadlines.watch(this);
  }

  #settleBuffering(fault: BodyFault | undefined): void {
    const settle = this.#onBuffered;
    if (settle !== undefined) this.bufferingMs = this.#options.clock.monotonicMs() - this.#readingSinceMs;
    this.#onBuffered = undefined;
    this.#bufferedByMs = Infinity;
    settle?.(fault);
  }

  readonly #onData = (bytes: Buffer): void => {
    if (this.fault !== undefined) return;
    this.receivedBytes += bytes.length;
    this.#lastByteAtMs = this.#options.clock.monotonicMs();
    if (this.receivedBytes > this.#options.maxBytes) {
      this.fail('body_too_large');
      return;
    }
    if (this.#buffered === undefined) this.#consumer?.onBodyBytes(bytes);
    else this.#buffered.push(bytes);
    // Not left to `end`, which waits while reading is paused: the backend may respond before.
    if (this.receivedBytes === this.length) {
      this.#onEnd();
    } else if (this.#buffered !== undefined && this.receivedBytes >= BUFFERED_BYTES) {
      this.pause();
      this.#settleBuffering(undefined);
    }
  };

  readonly #onEnd = (): void => {
    if (this.isComplete || this.fault !== undefined) return;
    this.isComplete = true;
    this.#options.deadlines.unwatch(this);
    if (this.#buffered === undefined) this.#consumer?.onBodyEnd();
    else this.#settleBuffering(undefined);
  };

  readonly #onAborted = (): void => this.fail('aborted');
}
