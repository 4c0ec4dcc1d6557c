import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { expect, onTestFinished } from 'vitest';

export type Respond = (socket: Socket) => void;

/** Sends `head`, then `text` without end, as fast as the other side reads. */
export function flood(head: string, text: string): Respond {
  const piece = Buffer.from(text.repeat(Math.ceil(65_536 / text.length)));
  return (socket) => {
    const more = () => {
      while (!socket.destroyed && socket.write(piece));
    };
    socket.write(head);
    socket.on('drain', more);
    more();
  };
}

/** Sends `text` again and again, with pauses. */
export function drip(text: string): Respond {
  return (socket) => {
    const timer = setInterval(() => socket.write(text), 100).unref();
    socket.on('close', () => clearInterval(timer));
  };
}

/** Starts a server that responds to the first bytes of each connection, until the test ends. */
export async function startFloodingServer(respond: Respond) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    socket.once('data', () => {
      respond(socket);
      socket.resume();
    });
  }).listen(0, '127.0.0.1');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Resolves to the bytes that the server could send, once all connections are closed. */
    async sentBytes(): Promise<number> {
      await expect
        .poll(() => sockets.length > 0 && sockets.every(({ closed }) => closed), { timeout: 20_000 })
        .toBe(true);
      return sockets.reduce((sum, { bytesWritten }) => sum + bytesWritten, 0);
    },
  };
}
