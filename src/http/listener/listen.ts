import { once } from 'node:events';
import type { Server } from 'node:http';
import { Server as TlsServer } from 'node:https';
import { isIPv6 } from 'node:net';

interface ListenAddress {
  readonly host: string;
  readonly port: number;
  /** The environment variable that set the port. */
  readonly portVariable?: string | undefined;
}

/**
 * Connections that the kernel completes before they are accepted; the next ones wait at least a second for another try.
 * Half the default of limits.in_flight, because all of them may be accepted, and send a request, at once.
 */
const BACKLOG = 1024;

/**
 * Binds `server` and resolves to its URL; port 0 takes any free one. Rejects with an error that says which setting to
 * change. `name` is the listener's section of the config.
 */
export async function listen(
  server: Server | TlsServer,
  name: string,
  { host, port, portVariable }: ListenAddress,
): Promise<string> {
  server.listen({ port, host, backlog: BACKLOG });
  try {
    await once(server, 'listening');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = code === 'EADDRINUSE' ? 'something else listens there already' : message;
    const hint = portVariable === undefined ? '' : ` (${portVariable}=0 in the environment takes any free port)`;
    throw new Error(`cannot listen on ${host}:${port}: ${reason}; choose another ${name}.host or ${name}.port${hint}`);
  }
  const address = server.address();
  const boundPort = address !== null && typeof address === 'object' ? address.port : port;
  const scheme = server instanceof TlsServer ? 'https' : 'http';
  return `${scheme}://${isIPv6(host) ? `[${host}]` : host}:${boundPort}`;
}
