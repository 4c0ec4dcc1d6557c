import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** Resolves to the port. The server and its connections are closed when the test ends. */
export async function listen(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** A well-behaved HTTP server. */
export function startHttpUpstream(listener: RequestListener): Promise<number> {
  return listen(createHttpServer(listener));
}

export interface RawUpstream {
  readonly port: number;
  /** The heads of the requests that came, as text. */
  readonly heads: readonly string[];
  readonly connections: () => number;
}

/** Speaks whatever `answer` writes; called for each head of a request, on whichever connection. */
export async function startRawUpstream(answer: (socket: Socket, head: string) => void): Promise<RawUpstream> {
  const heads: string[] = [];
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    let received = '';
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      for (let end = received.indexOf('\r\n\r\n'); end >= 0; end = received.indexOf('\r\n\r\n')) {
        const head = received.slice(0, end);
        received = received.slice(end + 4);
        heads.push(head);
        answer(socket, head);
      }
    });
  });
  return { port: await listen(server), heads, connections: () => connections };
}
