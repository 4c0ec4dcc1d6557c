/** A TCP proxy that misbehaves on demand: what is between a gateway and its store, when it fails. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { onTestFinished } from 'vitest';

export interface FaultProxy {
  readonly port: number;
  /** Bytes that came from clients so far. */
  readonly received: number;
  /** Whatever comes from the server from now on is passed on so much later. */
  delay(ms: number): void;
  /** Nothing passes any more, in neither direction; connections stay open, new ones are accepted, and clients can send. */
  stall(): void;
  /** What was held back passes, and everything after it. */
  resume(): void;
  /** Resets every connection. New ones are welcome. */
  cut(): void;
  /**
   * Lets requests with this text through and drops what the server says next on their connection, which is then reset: the
   * server has done what it was asked, and nobody hears of it. So often, then no more. Resolves after the last one.
   */
  loseReplies(text: string, times: number): Promise<void>;
}

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  /** The next reply is lost. */
  doomed: boolean;
  /** Settles when all that the server said has been passed on. */
  passed: Promise<void>;
  /** What the client sent while nothing passes. */
  readonly held: Buffer[];
}

/** Passes on to a port of 127.0.0.1. Closed when the test ends. */
export async function startFaultProxy(to: { readonly port: number }): Promise<FaultProxy> {
  const pairs = new Set<Pair>();
  let received = 0;
  let delayMs = 0;
  let stalled = false;
  let losing: { readonly text: string; left: number; readonly done: () => void } | undefined;

  function pass(pair: Pair, into: Socket, bytes: Buffer): void {
    if (pairs.has(pair)) into.write(bytes);
  }

  function end(pair: Pair): void {
    if (!pairs.delete(pair)) return;
    for (const socket of [pair.client, pair.server]) socket.resetAndDestroy();
  }

  function replied(pair: Pair, bytes: Buffer): void {
    if (pair.doomed) {
      end(pair);
      if (losing && --losing.left === 0) {
        losing.done();
        losing = undefined;
      }
    } else {
      const dueMs = performance.now() + delayMs;
      pair.passed = pair.passed.then(async () => {
        if (dueMs > performance.now()) await setTimeout(dueMs - performance.now());
        pass(pair, pair.client, bytes);
      });
    }
  }

  const listener = createServer((client) => {
    const server = connect(to.port, '127.0.0.1');
    const pair: Pair = { client, server, doomed: false, passed: Promise.resolve(), held: [] };
    pairs.add(pair);
    if (stalled) server.pause();
    for (const socket of [client, server]) socket.on('error', () => end(pair)).on('close', () => end(pair));
    client.on('data', (bytes: Buffer) => {
      received += bytes.length;
      pair.doomed ||= losing !== undefined && bytes.includes(losing.text);
      if (stalled) pair.held.push(bytes);
      else pass(pair, server, bytes);
    });
    server.on('data', (bytes: Buffer) => replied(pair, bytes));
  }).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  onTestFinished(() => {
    listener.close();
    for (const pair of pairs) end(pair);
  });

  return {
    port: (listener.address() as AddressInfo).port,
    get received() {
      return received;
    },
    delay(ms) {
      delayMs = ms;
    },
    stall() {
      stalled = true;
      for (const { server } of pairs) server.pause();
    },
    resume() {
      stalled = false;
      for (const pair of pairs) {
        for (const bytes of pair.held.splice(0)) pass(pair, pair.server, bytes);
        pair.server.resume();
      }
    },
    cut() {
      for (const pair of pairs) end(pair);
    },
    loseReplies: (text, times) =>
      new Promise((resolve) => {
        losing = { text, left: times, done: resolve };
      }),
  };
}
