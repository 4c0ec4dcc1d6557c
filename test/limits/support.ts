import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** A connection that a test drives by hand. */
export interface Session {
  readonly socket: Socket;
  send(bytes: string): void;
  /** All that came so far, as Latin-1. */
  received(): string;
  /** The answers so far, by their status. Answers are told apart by their status lines. */
  statuses(): number[];
  /** Resolves when the other side has closed. */
  readonly closed: Promise<void>;
  isClosed(): boolean;
}

/** Opens a connection and waits until it stands. Ended when the test ends. */
export async function openSession(url: string): Promise<Session> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let received = '';
  let isClosed = false;
  socket.setEncoding('latin1').on('data', (text: string) => {
    received += text;
  });
  socket.on('error', () => {});
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => {
      isClosed = true;
      resolve();
    });
  });
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  return {
    socket,
    send: (bytes) => void socket.write(bytes, 'latin1'),
    received: () => received,
    statuses: () => [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status)),
    closed,
    isClosed: () => isClosed,
  };
}

/** A request that is allowed. */
export function request(key: string, path = '/v1/conversations', ...fields: string[]): string {
  return `${[`GET ${path} HTTP/1.1`, 'Host: a', `Authorization: Bearer ${key}`, ...fields].join('\r\n')}\r\n\r\n`;
}
