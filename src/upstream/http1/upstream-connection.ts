import type { Socket } from 'node:net';
import { atEndOfTurn, type TurnEndListener } from '../../base/end-of-turn.ts';
import { freeBytes } from '../../base/free-bytes.ts';
import { JoinedBytes } from '../../base/joined-bytes.ts';
import { resetSocket, unacceptedBytes } from '../../base/reset-socket.ts';
import { type Connect, ConnectionError } from './connect.ts';
import { ResponseParser, type ResponseSink } from './response-parser.ts';

/** A header name: a token (RFC 9110 §5.6.2). */
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** A header value (RFC 9110 §5.5). */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * Returns a header as it is sent (RFC 9112 §5), after the CRLF of the line before it.
 * @throws TypeError if name or value has a forbidden character: no unchecked header is ever written.
 */
export function headerLine(name: string, value: string): string {
  if (!NAME.test(name) || !VALUE.test(value)) throw new TypeError(`invalid ${name} header`);
  return `\r\n${name}: ${value}`;
}

/** Returns {@link headerLine} for one name. Its strings are joined once: for each request, they would be garbage. */
export function headerLineOf(name: string): (value: string) => string {
  const start = headerLine(name, '');
  return (value) => (VALUE.test(value) ? start + value : headerLine(name, value));
}

const hostLine = headerLineOf('Host');

/**
 * Returns the head of a request as sent to the upstream (RFC 9112 §3) in Latin-1. `lines`: all headers but Host, as
 * {@link headerLine} returns them. The caller has validated `method` and `path`.
 * @throws TypeError if `host` has a forbidden character.
 */
export function requestHead(method: string, path: string, host: string, lines: string): string {
  return `${method} ${path} HTTP/1.1${hostLine(host)}${lines}\r\n\r\n`;
}

/** Handles the response to one request, up to its end or `onError`; to neither after {@link UpstreamConnection.destroy}. */
export interface ResponseHandler extends ResponseSink {
  /**
   * Called before the request is written. Returns false, after closing the connection, if it must not be sent any more.
   * What it passes to {@link UpstreamConnection.sendContent} is written together with the head.
   */
  onSend(): boolean;
  /** The upstream takes the body more slowly than it arrives: no more of it should be sent until `onDrained`. */
  onCongested?(): void;
  onDrained?(): void;
  /** All bytes of one read were passed on, and the response is not complete. */
  onPause(): void;
  /** No more of the response will arrive; the connection is closed. */
  onError(error: unknown): void;
}

/** `length`: by Content-Length, which the head announces. */
export type BodyFraming = 'length' | 'chunked';

/** What a connection reports to its owner, usually a pool. */
interface ConnectionOwner {
  /** The connection is open: requests can be sent. */
  onOpen(): void;
  /** The connection can carry another exchange. Called at the end of the turn of the event loop. */
  onFree(): void;
  /** Closed, or could not be opened. Called once, before `onError`. `error`: undefined if the gateway closed it. */
  onGone(error: Error | undefined): void;
}

/**
 * A persistent connection to the upstream, with at most one exchange at a time. Nothing is pipelined, so a byte that
 * arrives between exchanges is unsolicited and closes the connection.
 *
 * A request is written at the end of the turn of the event loop, together with all others: the upstream is woken up once
 * for all of them (docs/dev/decisions/0007-writes-wait-for-the-end-of-the-turn.md). After a response, the connection is free
 * at the end of the turn. Its next request is then written one turn later, after the socket was polled, so the gateway
 * notices if the upstream closes the connection right after its response.
 */
export class UpstreamConnection implements TurnEndListener {
  readonly #socket: Socket;
  readonly #owner: ConnectionOwner;
  readonly #parser: ResponseParser;
  #handler: ResponseHandler | undefined;
  /** The head of a request that is not written yet. */
  #unsent: string | undefined;
  /** How the body of the request is delimited; undefined once all of it is written, or if there is none. */
  #bodyFraming: BodyFraming | undefined;
  /** Parts of the body that are not written yet. */
  readonly #unsentContent = new JoinedBytes();
  #isContentEnded = false;
  #isPaused = false;
  #areBytesKept = false;
  #isGone = false;
  #error: Error | undefined;
  /** Whether the connection was ever open. */
  isOpen = false;
  /** Whether the exchange is not the first one. The upstream may then close the connection just as it is used. */
  isReused = false;
  /** Whether a request with a body was sent: a backend that leaves it unread takes it for the next request. */
  hasCarriedBody = false;
  /** Whether any byte has arrived since the last request was sent. */
  hasResponded = false;

  constructor(connect: Connect, maxHeaderBytes: number, owner: ConnectionOwner) {
    this.#owner = owner;
    this.#parser = new ResponseParser(maxHeaderBytes);
    this.#socket = connect({
      onConnected: () => {
        this.#socket.on('end', () => this.#peerEnded());
        this.isOpen = true;
        owner.onOpen();
      },
      onBytes: (bytes, length) => {
        this.#areBytesKept = false;
        this.#receive(bytes, length);
        return this.#areBytesKept;
      },
    });
    this.#readBeforeWriteError();
    this.#socket.on('error', (error: Error) => {
      this.#error = error;
    });
    this.#socket.on('close', () => this.#gone(this.#error ?? endedError()));
  }

  /**
   * Delays the destruction of the socket by a failed write until the socket was read: the upstream may have responded
   * early, for example with 413, and then closed the connection.
   */
  #readBeforeWriteError(): void {
    const socket = this.#socket;
    const destroy = socket.destroy.bind(socket);
    socket.destroy = (error?: NodeJS.ErrnoException) => {
      if (error?.syscall !== 'write') return destroy(error);
      setImmediate(destroy, error);
      return socket;
    };
  }

  /** Address of the upstream; undefined unless connected. */
  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress;
  }

  /** Bytes of the request that wait for the upstream to read. */
  get unacceptedBytes(): number {
    return unacceptedBytes(this.#socket);
  }

  /** What the last response tells about the connection. */
  get response(): Pick<ResponseParser, 'keepAliveSeconds' | 'mayContentFollow' | 'hasContentFollowed'> {
    return this.#parser;
  }

  /**
   * Sends a request. `head`: as Latin-1. `isHead`: its method is HEAD. `bodyFraming`: undefined if it has no body; else the
   * body follows by {@link sendContent} and {@link endContent}, from `onSend` on.
   */
  send(head: string, isHead: boolean, handler: ResponseHandler, bodyFraming?: BodyFraming): void {
    this.#handler = handler;
    this.isReused = this.hasResponded;
    this.hasResponded = false;
    this.#parser.expect(handler, isHead);
    this.#unsent = head;
    this.#bodyFraming = bodyFraming;
    if (bodyFraming !== undefined) this.hasCarriedBody = true;
    this.#isContentEnded = false;
    atEndOfTurn(this);
  }

  /** Sends a part of the body at the end of the turn, when the upstream's early response was read, if there is one. */
  sendContent(bytes: Buffer): void {
    const isFirst = this.#unsentContent.length === 0;
    this.#unsentContent.add(bytes);
    if (this.#unsent === undefined && isFirst) atEndOfTurn(this);
  }

  /** The body is complete. */
  endContent(): void {
    this.#isContentEnded = true;
    if (this.#unsent === undefined && this.#unsentContent.length === 0) atEndOfTurn(this);
  }

  /** Writes what waits of the request. Without one, the connection is free. */
  onTurnEnd(): void {
    if (this.#handler === undefined) {
      if (!this.#isGone) this.#owner.onFree();
      return;
    }
    const head = this.#unsent ?? '';
    if (head !== '' && !this.#handler.onSend()) return;
    this.#unsent = undefined;
    if (this.#bodyFraming !== undefined) this.#writeContent(head);
    else if (head !== '') this.#socket.write(head, 'latin1');
  }

  /** Writes the head, if it is not written yet, and what has gathered of the body: one chunk (RFC 9112 §7.1), if chunked. */
  #writeContent(head: string): void {
    if (this.#handler === undefined) return;
    const socket = this.#socket;
    const { length } = this.#unsentContent;
    const parts = this.#unsentContent.take();
    const isChunk = this.#bodyFraming === 'chunked' && length > 0;
    let after = isChunk ? '\r\n' : '';
    if (this.#isContentEnded) {
      if (this.#bodyFraming === 'chunked') after += '0\r\n\r\n';
      this.#bodyFraming = undefined;
    }
    const before = isChunk ? `${head}${length.toString(16)}\r\n` : head;
    socket.cork();
    if (before !== '') socket.write(before, 'latin1');
    for (const part of parts) socket.write(part, () => freeBytes(part));
    if (after !== '') socket.write(after, 'latin1');
    socket.uncork();
    if (this.#bodyFraming === undefined || socket.writableLength < socket.writableHighWaterMark) return;
    this.#handler.onCongested?.();
    socket.once('drain', () => this.#handler?.onDrained?.());
  }

  /** Handles the first `length` bytes. What arrives before the request is written is not a response to it. */
  #receive(bytes: Buffer, length: number): void {
    const handler = this.#handler;
    if (handler === undefined) {
      this.#parser.receive(bytes, length);
      this.destroy();
      return;
    }
    if (this.#unsent !== undefined) {
      this.#fail(endedError());
      return;
    }
    this.hasResponded = true;
    try {
      this.#parser.receive(bytes, length);
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (this.#handler !== handler) return;
    if (this.#parser.isReading) handler.onPause();
    else this.#completed();
  }

  /** The bytes that were passed on last are needed until they are written: nothing else is read into their buffer. */
  keepBytes(): void {
    this.#areBytesKept = true;
  }

  /** Stops reading until {@link resume} or the end of the exchange, which bytes that are already read may contain. */
  pause(): void {
    this.#isPaused = true;
    this.#socket.pause();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#socket.resume();
  }

  /** Closes the connection at once. An exchange in progress is not notified. */
  destroy(): void {
    this.#handler = undefined;
    this.#socket.destroy();
    this.#gone(undefined);
  }

  /** Like {@link destroy}, but leaves no port in TIME_WAIT, as an orderly close would (over TLS: closes). */
  reset(): void {
    resetSocket(this.#socket);
    this.destroy();
  }

  #peerEnded(): void {
    if (this.#handler === undefined) {
      this.destroy();
      return;
    }
    try {
      if (this.#parser.finish()) this.#completed();
      else this.#fail(endedError());
    } catch (error) {
      this.#fail(error);
    }
  }

  #completed(): void {
    this.#handler = undefined;
    this.resume();
    // The rest of a body that the upstream did not wait for would be taken for the next request.
    if (this.#bodyFraming !== undefined || this.#socket.errored) this.destroy();
    else if (this.#parser.mayPersist) atEndOfTurn(this);
    else if (this.#parser.isContentWithheld)
      this.reset(); // a flood of HEADs would use up the gateway's ports
    else this.destroy();
  }

  #fail(error: unknown): void {
    const handler = this.#handler;
    this.destroy();
    handler?.onError(error);
  }

  #gone(error: Error | undefined): void {
    if (this.#isGone) return;
    this.#isGone = true;
    const handler = this.#handler;
    this.#handler = undefined;
    this.#owner.onGone(error);
    if (error !== undefined) handler?.onError(error);
  }
}

function endedError(): ConnectionError {
  return new ConnectionError('ECONNRESET', 'the other side closed the connection');
}
