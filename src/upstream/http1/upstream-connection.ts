import type { Socket } from 'node:net';
import { resetSocket } from '../../base/reset-socket.ts';
import type { Taker } from './connection-pool.ts';
import type { Share } from './customer-shares.ts';
import { ConnectionEndedError } from './errors.ts';
import { AnswerParser, type AnswerSink } from './response-parser.ts';

/**
 * One request and its response, as seen by the connection. Ends with either the end of the response or one `onError`,
 * unless {@link UpstreamConnection.destroy} ends it first.
 */
export interface Exchange extends AnswerSink {
  /**
   * Called before the request is written. Returns false, after closing the connection, if it must not be sent any more.
   */
  onLeaving(): boolean;
  /** All bytes of one read were passed on, and the response is not complete. */
  onPause(): void;
  /** No more of the response will arrive; the connection is closed. */
  onError(error: unknown): void;
}

/** What a connection reports to its owner, usually a pool. */
export interface ConnectionOwner {
  /** The connection can carry another exchange. Called at the end of the turn of the event loop. */
  onFree(connection: UpstreamConnection): void;
  /** Called once, for whatever reason, before `onError` of an exchange in progress. */
  onGone(connection: UpstreamConnection): void;
}

/**
 * A persistent connection to the upstream, with at most one exchange at a time. Nothing is pipelined, so a byte that
 * arrives between exchanges is unsolicited and closes the connection.
 *
 * A request is written at the end of the turn of the event loop. Its response could not be read earlier, and everything
 * that the exchanges of a turn write is sent together. The upstream is then woken up once for all of it; a wake-up
 * costs as much as the rest of the write.
 *
 * After a response, the connection is not used until the end of the turn. Its next request is then written one turn
 * later, after the socket was polled. So the gateway notices if the upstream closes the connection right after its
 * response.
 */
export class UpstreamConnection {
  readonly #socket: Socket;
  readonly #owner: ConnectionOwner;
  readonly #parser: AnswerParser;
  #exchange: Exchange | undefined;
  /** The head of a request that is not written yet. */
  #held: string | undefined;
  #isPaused = false;
  #isGone = false;
  #isReused = false;
  #hasAnswered = false;
  #error: Error | undefined;
  /** While the connection is free: monotonic ms from which on it must not be used. Set by the pool. */
  usableUntilMs = 0;
  /** The connection must not be used again. Set by the pool. */
  isRetired = false;
  /** The claim of the exchange in progress. Set by the pool. */
  share: Share<Taker> | undefined;

  /** `socket`: connecting or connected. Its bytes must be passed to {@link receive}. */
  constructor(socket: Socket, mostHeaderBytes: number, owner: ConnectionOwner) {
    this.#socket = socket;
    this.#owner = owner;
    this.#parser = new AnswerParser(mostHeaderBytes);
    socket.on('error', (error: Error) => {
      this.#error = error;
    });
    socket.on('close', () => this.#gone(this.#error ?? new ConnectionEndedError()));
  }

  /** Call it once connected. Earlier failures arrive as `error` events. */
  opened(): void {
    this.#socket.on('end', () => this.#ended());
  }

  /** Address of the upstream; undefined unless connected. */
  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress;
  }

  /** Whether the exchange is not the first one. The upstream may then close the connection just as it is used. */
  get isReused(): boolean {
    return this.#isReused;
  }

  /** Whether any byte has arrived since the last request was sent. */
  get hasAnswered(): boolean {
    return this.#hasAnswered;
  }

  /** Keep-alive timeout of the last response, in seconds. Undefined: no Keep-Alive header; NaN: no timeout in it. */
  get keepAliveSeconds(): number | undefined {
    return this.#parser.keepAliveSeconds;
  }

  /** Sends a request without a body. `head`: the whole request, as Latin-1. `isHead`: its method is HEAD. */
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
   * Takes the first `length` of `bytes`, which may be overwritten during the call and after it. Bytes that arrive
   * before the request is written are not its response, and fail the exchange.
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

  /** Stops reading until {@link resume} or the end of the exchange, which bytes already read may still bring about. */
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

  /** Not an orderly close: the gateway's side would stay in TIME_WAIT, and a flood of HEADs would use up its ports. */
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
