import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';

const HOST = '127.0.0.1';
const MAX_PORT = 65_535;

export interface FoundPorts {
  readonly ports: readonly number[];
  readonly skipped: readonly number[];
}

/**
 * Finds for each wanted port the first free one from it on, all distinct; 0 takes any. `avoided` counts as in use.
 * `skipped`: the wanted and next ports that are in use. Rejects if a port cannot be used for another reason.
 */
export async function findFreePorts(wanted: readonly number[], avoided?: number): Promise<FoundPorts> {
  const ports: number[] = [];
  const skipped = new Set<number>();
  for (const first of wanted) {
    let port = first;
    let bound: number | undefined;
    for (; bound === undefined; port += Math.sign(first)) {
      if (port > MAX_PORT) throw new Error(`no port of ${HOST} is free from ${first} on`);
      if (ports.includes(port)) continue;
      bound = port === avoided ? undefined : await bind(port);
      if (bound === undefined) skipped.add(port);
    }
    ports.push(bound);
  }
  return { ports, skipped: [...skipped] };
}

/** Binds a port for a moment. Resolves to its number; undefined if it is in use. */
async function bind(port: number): Promise<number | undefined> {
  const server = createServer();
  try {
    await once(server.listen({ host: HOST, port }), 'listening');
    return (server.address() as AddressInfo).port;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE') return undefined;
    throw new Error(`cannot listen on ${HOST}:${port}: ${message}`);
  } finally {
    server.close();
  }
}
