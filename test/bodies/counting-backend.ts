import { createServer, type Socket } from 'node:net';
import { listen } from '../upstream/support/upstreams.ts';

/** A request on its way into a {@link CountingBackend}. */
export interface Arrival {
  readonly socket: Socket;
  /** Whether the connection has carried a request before. */
  readonly isKept: boolean;
  /** So far, head and body. */
  readonly bytes: number;
  /** Empty until the head is complete. */
  readonly head: string;
  readonly isComplete: boolean;
}

export interface CountingBackend {
  readonly port: number;
  readonly url: string;
  /** Requests of which at least one byte arrived. */
  readonly begun: number;
  /** How often each path arrived in a complete head. */
  readonly arrivals: ReadonlyMap<string, number>;
  readonly connections: ReadonlySet<Socket>;
}

/** Calls `react` whenever bytes of a request arrived: it responds, closes, resets, or does nothing. Closed with the test. */
export async function startCountingBackend(react: (arrival: Arrival) => void): Promise<CountingBackend> {
  let begun = 0;
  const arrivals = new Map<string, number>();
  const connections = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
    let received = '';
    let isKept = false;
    let head = '';
    socket.setEncoding('latin1').on('data', (text: string) => {
      if (received === '') begun++;
      received += text;
      const headEnd = received.indexOf('\r\n\r\n');
      if (head === '' && headEnd >= 0) {
        head = received.slice(0, headEnd);
        const [, path = ''] = head.split(' ', 2);
        arrivals.set(path, (arrivals.get(path) ?? 0) + 1);
      }
      const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0);
      const isComplete = head !== '' && received.length >= headEnd + 4 + length;
      const arrival = { socket, isKept, bytes: received.length, head, isComplete };
      if (isComplete) {
        received = received.slice(headEnd + 4 + length);
        head = '';
        isKept = true;
      }
      react(arrival);
    });
  });
  const port = await listen(server);
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    get begun() {
      return begun;
    },
    arrivals,
    connections,
  };
}

/** A response after which the connection is kept for longer than any test lasts. */
export const OK = 'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=600\r\nContent-Length: 2\r\n\r\nok';

export function respond({ socket, isComplete }: Arrival): void {
  if (isComplete) socket.write(OK);
}

/** The paths that arrived more than once. */
export function twice(...backends: readonly CountingBackend[]): string[] {
  const sums = new Map<string, number>();
  for (const { arrivals } of backends) {
    for (const [path, count] of arrivals) sums.set(path, (sums.get(path) ?? 0) + count);
  }
  return [...sums].filter(([, count]) => count > 1).map(([path]) => path);
}
