/**
 * Bodies of requests to the operator listeners, each in one buffer. Node.js keeps every piece of an unread body as an
 * object, and a client chooses the pieces: in chunks of one byte, an object costs a hundred times its content. So a body
 * is copied as it arrives, from its first byte on, even while the request waits or is authenticated.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pauseReading, resumeReading } from '../../base/pause-reading.ts';
import { announcesBody } from './connections.ts';

/** Content kept before a handler asks for it. Reading pauses beyond that: what the socket has already read is kept too. */
const HELD_BYTES = 16 * 1024;
/** Bytes that chunked framing may cost beyond the content. Clients that mean well need a few per KiB. */
const MAX_FRAMING_BYTES = 16 * 1024;
/** Age from which a body that is not complete can cost its connection, unless its client is known. */
const LATE_MS = 1000;

/** Request property with its body: a map would outlive requests that are dropped unanswered. */
const BODY = Symbol('held body');
type RequestWithHeldBody = IncomingMessage & { [BODY]?: HeldBody };

export type HeldBodyFault = 'too_large' | 'framing' | 'incomplete';

class HeldBody {
  readonly #req: IncomingMessage;
  readonly #beganMs: number;
  readonly #bytesReadBefore: number;
  readonly #settled = Promise.withResolvers<HeldBodyFault | undefined>();
  #content = Buffer.alloc(0);
  #length = 0;
  /** Undefined until a handler asks for the body. */
  #limitBytes: number | undefined;
  #isKnown = false;
  #isPaused = false;

  constructor(req: IncomingMessage, nowMs: number) {
    this.#req = req;
    this.#beganMs = nowMs;
    this.#bytesReadBefore = req.socket.bytesRead;
    req.on('data', (piece: Buffer) => this.#receive(piece));
    req.once('end', () => this.#settled.resolve(undefined));
    req.once('close', () => this.#settled.resolve('incomplete'));
  }

  async read(limitBytes: number, isKnown: boolean): Promise<Buffer | HeldBodyFault> {
    this.#limitBytes = limitBytes;
    this.#isKnown = isKnown;
    if (Math.max(this.#length, Number(this.#req.headers['content-length'] ?? 0)) > limitBytes) return 'too_large';
    this.resume();
    return (await this.#settled.promise) ?? this.#content.subarray(0, this.#length);
  }

  resume(): void {
    if (this.#isPaused) resumeReading(this.#req.socket);
    this.#isPaused = false;
  }

  isLate(nowMs: number): boolean {
    return !this.#isKnown && !this.#req.complete && nowMs - this.#beganMs >= LATE_MS;
  }

  #receive(piece: Buffer): void {
    const length = this.#length + piece.length;
    const fault = this.#faultAt(length);
    if (fault !== undefined) {
      this.#settled.resolve(fault);
      this.#req.removeAllListeners('data');
      this.#pause();
      return;
    }
    if (length > this.#content.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(1024, 2 * length));
      this.#content.copy(grown, 0, 0, this.#length);
      this.#content = grown;
    }
    piece.copy(this.#content, this.#length);
    this.#length = length;
    if (this.#limitBytes === undefined && length > HELD_BYTES) this.#pause();
  }

  #faultAt(length: number): HeldBodyFault | undefined {
    const { socket, headers } = this.#req;
    const framingBytes = socket.bytesRead - this.#bytesReadBefore - length;
    if (headers['transfer-encoding'] !== undefined && framingBytes > MAX_FRAMING_BYTES) return 'framing';
    return this.#limitBytes !== undefined && length > this.#limitBytes ? 'too_large' : undefined;
  }

  #pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    pauseReading(this.#req.socket);
  }
}

/** Begins to hold the body of a request that has one. Call it as the request arrives. */
export function holdBody(req: RequestWithHeldBody, res: ServerResponse, nowMs: number): void {
  if (!announcesBody(req)) return;
  const body = new HeldBody(req, nowMs);
  req[BODY] = body;
  // Otherwise the next request of the connection would never be read.
  res.once('close', () => body.resume());
}

/**
 * Resolves to the body, or to what is wrong with it; to undefined if there is none. Without {@link holdBody}, the body
 * is held from now on. `isKnown`: the client is authenticated, and may take its time.
 */
export async function readBody(
  req: RequestWithHeldBody,
  res: ServerResponse,
  { limitBytes, isKnown }: { readonly limitBytes: number; readonly isKnown: boolean },
): Promise<Buffer | HeldBodyFault | undefined> {
  if (req[BODY] === undefined) holdBody(req, res, 0);
  return req[BODY]?.read(limitBytes, isKnown);
}

/** Returns whether an unknown client has not sent the whole body within a second. */
export function isBodyLate(req: RequestWithHeldBody, nowMs: number): boolean {
  return req[BODY]?.isLate(nowMs) ?? false;
}
