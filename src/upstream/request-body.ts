import { IncomingMessage } from 'node:http';
import type { Clock } from '../base/clock.ts';
import { JoinedBytes } from '../base/joined-bytes.ts';
import { pauseReading, resumeReading } from '../base/pause-reading.ts';
import type { Deadlines, Timed } from './deadlines.ts';
import type { UpstreamFailure } from './failures.ts';

/** Why the rest of a body is not forwarded. `aborted`: the client closed its connection. */
export type BodyFault = Extract<UpstreamFailure, `body_${string}`> | 'aborted';

/** Receives a body after {@link RequestBody.attach}. */
export interface BodyConsumer {
  /** The bytes are the consumer's: nothing else reads or writes them. */
  onBodyBytes(bytes: Buffer): void;
  onBodyEnd(): void;
  /** Called every second while {@link RequestBody.isHeldUp}. */
  onBodyHeldUp?(): void;
  /** No more bytes follow. */
  onBodyFault(fault: BodyFault): void;
}

export interface BodyLimits {
  /** A longer body is a fault. */
  readonly maxBytes: number;
  /** A client that sends no byte for this long is a fault. */
  readonly stallTimeoutMs: number;
}

interface RequestBodyOptions extends BodyLimits {
  readonly deadlines: Pick<Deadlines, 'watch' | 'unwatch'>;
  readonly clock: Clock;
}

/** Read before the request takes quota and a connection: a slow small upload occupies neither. A read is kept whole. */
const BUFFERED_BYTES = 16 * 1024;
/**
 * Chunk sizes, extensions and line ends may take as many bytes as the content, and so many more. Each chunk costs CPU time,
 * whatever its size.
 */
const FREE_FRAMING_BYTES = 16 * 1024;
/** The least between the content of two chunks: CRLF, a digit, CRLF. */
const MIN_FRAMING_BYTES = 5;
/** While the gateway does not read, it checks this often whether the client is still there, and the consumer takes more. */
const PAUSE_CHECK_MS = 1_000;
/** Such a check reads once, unless as much as this waits. */
const HELD_BYTES = 64 * 1024;
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
  /** What has arrived and was not passed on. */
  readonly #held = new JoinedBytes();
  /** {@link flow} was called. */
  #isFlowing = false;
  #onBuffered: ((fault: BodyFault | undefined) => void) | undefined;
  #consumer: BodyConsumer | undefined;
  /** Monotonic ms, as are the following. */
  #bufferedByMs = Infinity;
  /** Moved forward by the time in which the gateway did not read. */
  #readingSinceMs: number;
  #lastByteAtMs: number;
  #pausedAtMs: number | undefined;
  #isSocketPaused = false;
  /** `bytesRead` of the socket at the last piece of the body, and where in that count the body begins. */
  #bytesRead: number;
  #startsAt: number | undefined;
  /** At least so much of what was read of the body is not content. */
  #framingBytes = 0;

  /** Call it as soon as `req` is emitted: nothing else reads `req`, so that no pieces wait in its own buffer. */
  constructor(req: RequestWithBody, length: number | undefined, options: RequestBodyOptions) {
    this.#req = req;
    this.length = length;
    this.#options = options;
    this.#bytesRead = req.socket.bytesRead;
    this.#readingSinceMs = options.clock.monotonicMs();
    this.#lastByteAtMs = this.#readingSinceMs;
    if (req[BODY] === 'malformed') this.fault = 'body_malformed';
    req[BODY] = this;
    req.on('data', this.#onData);
    req.on('end', this.#onEnd);
    req.on('error', this.#onAborted);
    // Node.js's parser calls it for each piece. Past the buffer and the events of a stream, a piece takes half the CPU time.
    if (req.readableLength > 0 || Object.hasOwn(req, 'push')) return;
    req.push = (piece: Buffer | null) => {
      if (piece === null) return IncomingMessage.prototype.push.call(req, null);
      this.#onData(piece);
      return true;
    };
  }

  /**
   * Reads the beginning of the body. Resolves, with reading paused, when the body is complete or {@link BUFFERED_BYTES} have
   * arrived; with a fault if neither happens by `deadlineMs` (monotonic).
   */
  buffer(deadlineMs: number): Promise<BodyFault | undefined> {
    // A destroyed request emits nothing any more. Node.js destroys complete ones, too.
    if (this.#req.destroyed && !this.isComplete) this.fault ??= 'aborted';
    if (this.fault !== undefined || this.isComplete || this.#pausedAtMs !== undefined)
      return Promise.resolve(this.fault);
    const { promise, resolve } = Promise.withResolvers<BodyFault | undefined>();
    this.#onBuffered = resolve;
    this.#bufferedByMs = deadlineMs;
    const nowMs = this.#options.clock.monotonicMs();
    this.#readingSinceMs = nowMs;
    this.#lastByteAtMs = nowMs;
    this.#watchProgress(nowMs);
    return promise;
  }

  /** From now on, `consumer` is notified of faults, and after {@link flow} of everything else. */
  attach(consumer: BodyConsumer): void {
    this.#consumer = consumer;
  }

  /** Passes what is buffered to the consumer, then the rest as it arrives. */
  flow(): void {
    this.#isFlowing = true;
    if (!this.isComplete) {
      this.resume();
      return;
    }
    this.#passHeld();
    this.#consumer?.onBodyEnd();
  }

  /** Stops reading: the consumer cannot take more at present. What was read from the socket already is held. */
  pause(): void {
    if (this.#pausedAtMs !== undefined || this.isComplete) return;
    this.#pausedAtMs = this.#options.clock.monotonicMs();
    this.#pauseSocket(true);
    this.#watchPause(this.#pausedAtMs);
  }

  resume(): void {
    if (this.#pausedAtMs === undefined || this.fault !== undefined) return;
    const nowMs = this.#options.clock.monotonicMs();
    this.#readingSinceMs += nowMs - this.#pausedAtMs;
    this.#pausedAtMs = undefined;
    this.#lastByteAtMs = nowMs;
    this.#watchProgress(nowMs);
    this.#passHeld();
    this.#pauseSocket(false);
  }

  /** Whether the consumer has paused the body, and more of it may come. */
  get isHeldUp(): boolean {
    return this.#isFlowing && this.#consumer !== undefined && this.#pausedAtMs !== undefined && !this.isComplete;
  }

  /** Leaves the rest unread: nobody needs it any more. */
  detach(): void {
    this.#consumer = undefined;
    this.#held.take();
    this.#isFlowing = true;
    this.pause();
    this.#options.deadlines.unwatch(this);
  }

  /** Ends the body because of a fault, unless it has already ended. */
  fail(fault: BodyFault): void {
    if (this.isComplete || this.fault !== undefined) return;
    this.pause();
    this.#options.deadlines.unwatch(this);
    this.fault = fault;
    this.#settleBuffering(fault);
    this.#consumer?.onBodyFault(fault);
  }

  onDeadline(): void {
    const nowMs = this.#options.clock.monotonicMs();
    if (this.#pausedAtMs !== undefined) {
      // An empty write fails if the client has reset the connection. That it closed it shows behind its last byte only.
      this.#req.socket.write('');
      if (this.#held.length < HELD_BYTES) this.#pauseSocket(false);
      this.#watchPause(nowMs);
      if (this.isHeldUp) this.#consumer?.onBodyHeldUp?.();
      return;
    }
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

  #watchPause(nowMs: number): void {
    this.deadlineMs = nowMs + PAUSE_CHECK_MS;
    this.#options.deadlines.watch(this);
  }

  /** Not the request, which would keep each further piece in a buffer of its own. */
  #pauseSocket(isPaused: boolean): void {
    if (isPaused === this.#isSocketPaused) return;
    this.#isSocketPaused = isPaused;
    if (isPaused) pauseReading(this.#req.socket);
    else resumeReading(this.#req.socket);
  }

  #passHeld(): void {
    for (const bytes of this.#held.take()) this.#consumer?.onBodyBytes(bytes);
  }

  /**
   * Counts what precedes a piece of a chunked body. Exact up to the last read; what the current one has of further chunks,
   * trailers and requests is not known before it is parsed.
   */
  #countFraming(): void {
    const { bytesRead } = this.#req.socket;
    if (bytesRead === this.#bytesRead) {
      this.#framingBytes += MIN_FRAMING_BYTES;
      return;
    }
    this.#startsAt ??= this.#bytesRead - this.receivedBytes - this.#framingBytes;
    this.#framingBytes = this.#bytesRead - this.#startsAt - this.receivedBytes;
    this.#bytesRead = bytesRead;
  }

  #settleBuffering(fault: BodyFault | undefined): void {
    const settle = this.#onBuffered;
    if (settle !== undefined) this.bufferingMs = this.#options.clock.monotonicMs() - this.#readingSinceMs;
    this.#onBuffered = undefined;
    this.#bufferedByMs = Infinity;
    settle?.(fault);
  }

  readonly #onData = (bytes: Buffer): void => {
    const isDetached = this.#isFlowing && this.#consumer === undefined;
    if (this.fault !== undefined || isDetached) return;
    if (this.length === undefined) this.#countFraming();
    this.receivedBytes += bytes.length;
    this.#lastByteAtMs = this.#options.clock.monotonicMs();
    if (this.receivedBytes > this.#options.maxBytes) {
      this.fail('body_too_large');
      return;
    }
    if (this.#framingBytes > this.receivedBytes + FREE_FRAMING_BYTES) {
      this.fail('body_malformed');
      return;
    }
    const isPaused = this.#pausedAtMs !== undefined;
    if (this.#isFlowing && !isPaused) this.#consumer?.onBodyBytes(bytes);
    else this.#held.add(bytes);
    // Not left to `end`, which comes later: the backend may respond before.
    if (this.receivedBytes === this.length) {
      this.#onEnd();
    } else if (isPaused) {
      this.#pauseSocket(true);
    } else if (!this.#isFlowing && this.receivedBytes >= BUFFERED_BYTES) {
      this.pause();
      this.#settleBuffering(undefined);
    }
  };

  readonly #onEnd = (): void => {
    if (this.isComplete || this.fault !== undefined) return;
    this.isComplete = true;
    this.#req.rawTrailers = []; // not forwarded
    this.#options.deadlines.unwatch(this);
    this.#pauseSocket(false);
    if (!this.#isFlowing) {
      this.#settleBuffering(undefined);
      return;
    }
    this.#passHeld();
    this.#consumer?.onBodyEnd();
  };

  readonly #onAborted = (): void => this.fail('aborted');
}
