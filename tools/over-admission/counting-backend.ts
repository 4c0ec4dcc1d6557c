/** The backend behind the gateways. Counts by itself: what a gateway says of its own count proves nothing. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface CountingBackend extends AsyncDisposable {
  readonly port: number;
  /** When each request arrived, in ms, in order. */
  readonly arrivals: readonly number[];
  /** How long it holds each response back: then requests wait for a connection to it. */
  responseDelayMs: number;
  /** The clock of the arrivals. */
  nowMs(): number;
  forget(): void;
}

/** `port` 0: a free one. `nowMs`: the clock of the window. */
export async function startCountingBackend(port: number, nowMs: () => number): Promise<CountingBackend> {
  const arrivals: number[] = [];
  const server = createServer((_, response) => {
    arrivals.push(nowMs());
    const respond = () => response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"data":[]}');
    if (backend.responseDelayMs === 0) respond();
    else setTimeout(respond, backend.responseDelayMs);
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const backend: CountingBackend = {
    port: (server.address() as AddressInfo).port,
    arrivals,
    responseDelayMs: 0,
    nowMs,
    forget: () => void arrivals.splice(0),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return backend;
}

/** Returns how many of these instants, in order, are in the fullest half-open interval of `windowMs`. */
export function mostInAnyWindow(instantsMs: readonly number[], windowMs: number): number {
  let most = 0;
  let first = 0;
  for (const [last, atMs] of instantsMs.entries()) {
    while ((instantsMs[first] ?? atMs) <= atMs - windowMs) first += 1;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

/** The same for intervals that follow each other, of which one begins at `beganMs`. */
export function mostInAnyPeriod(instantsMs: readonly number[], periodMs: number, beganMs: number): number {
  const counts = Map.groupBy(instantsMs, (atMs) => Math.floor((atMs - beganMs) / periodMs));
  return Math.max(0, ...[...counts.values()].map(({ length }) => length));
}
