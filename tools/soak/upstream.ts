/** A backend with moods: it serves, or fails in one of the ways that backends fail in. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

export const MOODS = ['serving', 'failing', 'resetting', 'silent', 'babbling', 'breaking off'] as const;
export type Mood = (typeof MOODS)[number];

/** A backend's own failure, which is not to be taken for the gateway's. */
export const UPSTREAM_FAILURE_TYPE = 'text/x-upstream-failure';
const BODY = JSON.stringify({ data: Array.from({ length: 20 }, (_, id) => ({ id, status: 'OPEN' })) });

export class MoodyUpstream {
  mood: Mood = 'serving';
  readonly #port: number;
  #server = this.#createServer();

  constructor(port: number) {
    this.#port = port;
  }

  async open(): Promise<void> {
    this.#server = this.#createServer().listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  /** Connections are cut, new ones refused. */
  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  #createServer() {
    return createServer((req, res) => this.#respond(req, res));
  }

  #respond(req: IncomingMessage, res: ServerResponse): void {
    switch (this.mood) {
      case 'serving':
        res.writeHead(200, { 'Content-Type': 'application/json' }).end(req.method === 'HEAD' ? undefined : BODY);
        return;
      case 'failing':
        res.writeHead(500, { 'Content-Type': UPSTREAM_FAILURE_TYPE }).end('no luck today');
        return;
      case 'resetting':
        req.socket.resetAndDestroy();
        return;
      case 'silent':
        return;
      case 'babbling':
        req.socket.end('HTTP/1.1 abc what\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n');
        return;
      case 'breaking off':
        res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': 2 * BODY.length });
        res.write(BODY, () => req.socket.destroy());
    }
  }
}
