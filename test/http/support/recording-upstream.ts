import { type AddressInfo, createServer, type Socket } from 'node:net';
import { type ReadRequest, readRequests } from './http-reader.ts';

export interface RecordingUpstream {
  readonly port: number;
  readonly url: string;
  /** Every request that came, in order. */
  readonly seen: readonly ReadRequest[];
  /** What came and is no request. */
  readonly faults: readonly Error[];
  close(): void;
}

/** What is sent for a request: bytes as Latin-1, or whatever is done with the connection. */
export type UpstreamAnswer = string | ((socket: Socket) => void);

const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{"data":[]}';

/** A backend that reads by the strict reader of the tests, and answers with bytes. */
export async function startRecordingUpstream(
  answer: (request: ReadRequest) => UpstreamAnswer = () => ANSWER,
): Promise<RecordingUpstream> {
  const seen: ReadRequest[] = [];
  const faults: Error[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => {});
    let received = '';
    socket.on('data', (bytes) => {
      received += bytes.toString('latin1');
      try {
        const { requests, rest } = readRequests(received);
        received = received.slice(received.length - rest);
        for (const request of requests) {
          seen.push(request);
          const reply = answer(request);
          if (typeof reply === 'string') socket.write(reply, 'latin1');
          else reply(socket);
        }
      } catch (error) {
        faults.push(error as Error);
        socket.destroy();
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    seen,
    faults,
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
