import type { Socket } from 'node:net';
import { AnswerParser, type AnswerSink } from './answer-parser.ts';
import { resetSocket } from './caller-connection.ts';
import type { Taker } from './connection-pool.ts';
import type { Share } from './customer-shares.ts';
import { ConnectionEndedError } from './failures.ts';

/** One request and its answer, from the connection's side. Exactly one of an ended answer and `onError` ends it. */
export interface Exchange extends AnswerSink {
  /** The request is about to leave. False: it must not any more; the exchange has ended, and the connection with it. */
  onLeaving(): boolean;
  /** Everything that came with one read was passed on, and the answer goes on. */
  onPause(): void;
  /** No (more of the) answer will come; the connection is gone. */
  onError(error: unknown): void;
}

/** What a connection tells the pool that it belongs to. */
export interface ConnectionOwner {
  /** The exchange ended in the turn before, and the connection can carry another one. */
  onFree(connection: UpstreamConnection): void;
  /** Once, whatever the reason; an exchange under way has been told before. */
  onGone(connection: UpstreamConnection): void;
}

/**
 * One kept connection to the upstream, with at most one exchange at a time: nothing is pipelined, so a byte that comes
 * between exchanges was asked for by nobody, and ends the connection.
 *
 * A request leaves at the end of the turn of the event loop. An answer could not be read before, and what all exchanges
 * of a turn write goes out in one go then: the upstream is woken up once for all of it, which costs as much as the rest.
 *
 * After a response the connection rests until the end of the turn. Its next request then leaves one turn later, after
 * the socket was polled: an upstream that closes the connection right behind its response is seen to do so.
 */
export class UpstreamConnection {
  readonly #socket: Socket;
  readonly #owner: ConnectionOwner;
  readonly #parser: AnswerParser;
  #exchange: Exchange | undefined;
  /** The head of a request that has not left yet. */
  #held: string | undefined;
  #isPaused = false;
  #isGone = false;
  #isReused = false;
  #hasAnswered = false;
  #error: Error | undefined;
  /** While it is free: monotonic ms after which it is not used any more. The pool's. */
  usableUntilMs = 0;
  /** It is not to be used again. The pool's. */
  isRetired = false;
  /** The claim of the exchange under way. The pool's. */
  share: Share<Taker> | undefined;

  /** `socket`: being made, or made. Its bytes come by {@link receive}. */
  constructor(socket: Socket, mostHeaderBytes: number, owner: ConnectionOwner) {
    this.#socket = socket;
    this.#owner = owner;
    this.#parser = new AnswerParser(mostHeaderBytes);
    socket.on('error', (error: Error) => {
      this.#error = error;
    });
    socket.on('close', () => this.#gone(this.#error ?? new ConnectionEndedError()));
  }

  /** The connection stands. An end before that is told by an error, which says why. */
  opened(): void {
    this.#socket.on('end', () => this.#ended());
  }

  /** Of the upstream; undefined unless the connection stands. */
  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress;
  }

  /** Whether the exchange is not its first one, so that the upstream may have been closing it as the request came. */
  get isReused(): boolean {
    return this.#isReused;
  }

  /** Whether any byte has come since the last request was sent. */
  get hasAnswered(): boolean {
    return this.#hasAnswered;
  }

  /** How long the upstream said, with its last answer, that it keeps the connection. */
  get keepAliveSeconds(): number | undefined {
    return this.#parser.keepAliveSeconds;
  }

  /** `head`: the request, which has no content, as Latin-1. */
  send(head: string, isHead: boolean, exchange: Exchange): void {
    this.#exchange = exchange;
    this.#isReused = this.#hasAnswered;
    this.#hasAnswered = false;
    this.#parser.expect(exchange, isHead);
    this.#held = head;
    setImmediate(UpstreamConnection.#leave, this);
  }

  static #leave(connection: UpstreamConnection): void {
    const head = connection.#held;
    if (head === undefined) return;
    connection.#held = undefined;
    if (connection.#exchange?.onLeaving()) connection.#socket.write(head, 'latin1');
  }

  /**
   * The first `length` of `bytes` came; the call may overwrite them, and they may be overwritten after it. What comes before a request has left is
   * no answer to it.
   */
  receive(bytes: Buffer, length: number): void {
    const exchange = this.#exchange;
    if (exchange === undefined) {
      this.destroy();
      return;
    }
    if (this.#held !== undefined) {
      this.#fail(new ConnectionEndedError());
      return;
    }
    this.#hasAnswered = true;
    try {
      this.#parser.receive(bytes, length);
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (this.#exchange !== exchange) return;
    if (this.#parser.isReading) exchange.onPause();
    else this.#over();
  }

  /** Reads nothing until {@link resume} or the end of the exchange, which what was read already may bring. */
  pause(): void {
    this.#isPaused = true;
    this.#socket.pause();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#socket.resume();
  }

  /** Ends the connection at once. An exchange under way hears nothing more. */
  destroy(): void {
    this.#exchange = undefined;
    this.#socket.destroy();
    this.#gone(undefined);
  }

  #ended(): void {
    if (this.#exchange === undefined) {
      this.destroy();
      return;
    }
    try {
      if (this.#parser.finish()) this.#over();
      else this.#fail(new ConnectionEndedError());
    } catch (error) {
      this.#fail(error);
    }
  }

  #over(): void {
    this.#exchange = undefined;
    this.resume();
    if (this.#parser.mayPersist) setImmediate(UpstreamConnection.#free, this);
    else if (this.#parser.isContentWithheld) this.#reset();
    else this.destroy();
  }

  static #free(connection: UpstreamConnection): void {
    if (!connection.#isGone) connection.#owner.onFree(connection);
  }

  /** Not closed in order: the gateway's side would wait in TIME_WAIT, and a flood of HEADs would use up its ports. */
  #reset(): void {
    resetSocket(this.#socket);
    this.#gone(undefined);
  }

  #fail(error: unknown): void {
    const exchange = this.#exchange;
    this.destroy();
    exchange?.onError(error);
  }

  #gone(error: Error | undefined): void {
    if (this.#isGone) return;
    this.#isGone = true;
    const exchange = this.#exchange;
    this.#exchange = undefined;
    this.#owner.onGone(this);
    if (error !== undefined) exchange?.onError(error);
  }
}
