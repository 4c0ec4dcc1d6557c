import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One request as the backend saw it. */
export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly rawHeaders: readonly string[];
  readonly headers: IncomingMessage['headers'];
}

export interface Backend {
  readonly url: string;
  /** Everything that arrived, in order. */
  readonly seen: readonly SeenRequest[];
  close(): Promise<void>;
}

const DEFAULT_ANSWER: RequestListener = (_req, res) => {
  res.writeHead(200, { 'Content-Type': 'application/json' }).end('{"data":[]}');
};

/** A real HTTP server that notes what it is asked. */
export async function startBackend(answer: RequestListener = DEFAULT_ANSWER): Promise<Backend> {
  const seen: SeenRequest[] = [];
  const server = createServer((req, res) => {
    seen.push({ method: req.method ?? '', url: req.url ?? '', rawHeaders: req.rawHeaders, headers: req.headers });
    answer(req, res);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
