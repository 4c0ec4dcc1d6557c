import { once } from 'node:events';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { bearer } from './admin.ts';
import { type Backend, startBackend } from './backend.ts';
import { startSystem, type TestSystem } from './system.ts';

export type Sections = Record<string, Record<string, unknown>>;

/** A backend of this machine, closed when the test ends. */
export async function openBackend(answer?: RequestListener): Promise<Backend> {
  const backend = await startBackend(answer);
  onTestFinished(() => backend.close().catch(() => {}));
  return backend;
}

/** A backend that responds when it is told to. */
export interface HeldBackend {
  readonly url: string;
  /** Responses that are held, oldest first. */
  readonly held: ServerResponse[];
  /** Connections that were opened so far. */
  connections(): number;
}

export async function openHeldBackend(): Promise<HeldBackend> {
  const held: ServerResponse[] = [];
  let connections = 0;
  const server = createServer((_req, res) => void held.push(res)).listen(0, '127.0.0.1');
  server.on('connection', () => connections++);
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, held, connections: () => connections };
}

/** Routes to the backend of `upstream` at `/default/…`, and to each of `upstreams` at `/<name>/…`. */
export function routesTo(...names: string[]) {
  const methods = ['GET', 'POST'];
  return names.map((name) => ({ path: `/${name}/{rest...}`, methods, upstream: name })) as unknown as Sections[string];
}

/** A gateway with these further backends, whose routes are those of {@link routesTo}. */
export function startWithBackends(upstreams: Sections, config: Sections = {}): Promise<TestSystem> {
  const routes = routesTo('default', ...Object.keys(upstreams));
  return startSystem({ config: { upstreams, routes, aliases: {}, ...config } });
}

/** Sends a GET to the backend of this name; resolves to the status and the code of a problem. */
export async function get({ gateway, key }: TestSystem, name: string): Promise<[status: number, code?: string]> {
  const response = await fetch(`${gateway.public}/${name}/x`, { headers: bearer(key) });
  const text = await response.text();
  if (response.headers.get('content-type') !== 'application/problem+json') return [response.status];
  return [response.status, JSON.parse(text).code];
}
