import { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import type { Connect, ConnectionEvents } from '../../../src/upstream/http1/connect.ts';

/** A connection whose opening, data, failure and end the test triggers, so that it controls the order of events. */
export class HeldConnection extends Socket {
  readonly #events: ConnectionEvents;
  /** What was sent, as Latin-1. */
  sent = '';

  constructor(events: ConnectionEvents) {
    super();
    this.#events = events;
  }

  open(): void {
    this.#events.onConnected();
  }

  /** Receives a response after the request was written. Resolves when a connection with a complete response is free. */
  async receive(text: string): Promise<void> {
    await setImmediate();
    this.receiveAtOnce(text);
    await setImmediate();
  }

  /** Receives in this turn of the event loop, before a request of the turn is written. */
  receiveAtOnce(text: string): void {
    const bytes = Buffer.from(text, 'latin1');
    this.#events.onBytes(bytes, bytes.length);
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: () => void): void {
    this.sent += chunk.toString('latin1');
    callback();
  }
}

export interface HeldConnections {
  readonly connect: Connect;
  /** All connections that were started, in order. */
  readonly started: readonly HeldConnection[];
}

export function holdConnections(): HeldConnections {
  const started: HeldConnection[] = [];
  return {
    started,
    connect(events) {
      const connection = new HeldConnection(events);
      started.push(connection);
      return connection;
    },
  };
}
