import { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import type { Connect, ConnectionEvents } from '../../../src/upstream/http1/connect.ts';

/** A connection that stands, fails, answers and ends when the test says so: the order of events is the test's. */
export class HeldConnection extends Socket {
  readonly #events: ConnectionEvents;
  /** What was sent, as Latin-1. */
  sent = '';

  constructor(events: ConnectionEvents) {
    super();
    this.#events = events;
  }

  stand(): void {
    this.#events.onConnected();
  }

  /** As a response comes: once the request has left. Resolves when a connection whose response is complete is free again. */
  async receive(text: string): Promise<void> {
    await setImmediate();
    this.receiveAtOnce(text);
    await setImmediate();
  }

  /** In this turn of the event loop: a request of it has not left yet. */
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
  /** All that were begun, in order. */
  readonly begun: readonly HeldConnection[];
}

export function holdConnections(): HeldConnections {
  const begun: HeldConnection[] = [];
  return {
    begun,
    connect(events) {
      const connection = new HeldConnection(events);
      begun.push(connection);
      return connection;
    },
  };
}
