import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, RequestListener } from 'node:http';
import { connect, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { type SystemSettings, startSystem, type TestSystem } from '../support/system.ts';

/** All methods with bodies, on any path below /api. */
export const ANY_ROUTE = {
  path: '/api/{rest...}',
  methods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
  max_body_bytes: 100_000_000,
};

/** What a backend received of a body. */
export interface Digest {
  readonly method: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly headers: IncomingMessage['headers'];
}

/** Responds with a {@link Digest} when the request is complete. */
export const digesting: RequestListener = async (req, res) => {
  const hash = createHash('sha256');
  let bytes = 0;
  try {
    for await (const chunk of req) {
      hash.update(chunk);
      bytes += chunk.length;
    }
  } catch {
    return;
  }
  const digest = { method: req.method, bytes, sha256: hash.digest('hex'), headers: req.headers };
  res.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(digest));
};

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

export interface BodySystem extends TestSystem {
  /** Headers that each request needs. */
  readonly headers: { readonly Authorization: string };
  /** Opens a connection to the gateway and sends a head with Host and Authorization, and `fields`. */
  open(request: string, ...fields: string[]): RawClient;
}

/** A gateway that forwards any method below /api, before a backend that responds with a digest by default. */
export async function startBodySystem(settings: SystemSettings = {}): Promise<BodySystem> {
  const config = { ...settings.config, routes: settings.config?.routes ?? ([ANY_ROUTE] as never) };
  const system = await startSystem({ answer: digesting, ...settings, config });
  return {
    ...system,
    headers: { Authorization: `Bearer ${system.key}` },
    open: (request, ...fields) => openClient(system.gateway.public, system.key, request, ...fields),
  };
}

/** Does what {@link BodySystem.open} does, for any gateway. */
export function openClient(origin: string, key: string, request: string, ...fields: string[]): RawClient {
  const { hostname, port } = new URL(origin);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true, noDelay: true });
  onTestFinished(() => void socket.destroy());
  const lines = [`${request} HTTP/1.1`, 'Host: a', `Authorization: Bearer ${key}`, ...fields];
  const client = new RawClient(socket);
  client.send(`${lines.join('\r\n')}\r\n\r\n`);
  return client;
}

/** A client that sends any bytes and notes what comes back. */
class RawClient {
  readonly socket: Socket;
  received = '';
  #ended: Promise<unknown>;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('latin1').on('data', (text) => {
      this.received += text;
    });
    socket.on('error', () => {});
    this.#ended = Promise.race([once(socket, 'end'), new Promise((resolve) => socket.once('close', resolve))]);
  }

  send(bytes: string | Uint8Array): void {
    if (typeof bytes === 'string') this.socket.write(bytes, 'latin1');
    else this.socket.write(bytes);
  }

  /** Resolves to what was received once it matches. */
  async until(pattern: RegExp): Promise<string> {
    while (!pattern.test(this.received)) {
      if (this.socket.destroyed || this.socket.readableEnded) throw new Error(`the connection ended: ${this.received}`);
      await Promise.race([once(this.socket, 'data'), this.#ended]);
    }
    return this.received;
  }

  /** Resolves to all that was received, once the gateway has ended its side. */
  async untilEnd(): Promise<string> {
    await this.#ended;
    return this.received;
  }
}
