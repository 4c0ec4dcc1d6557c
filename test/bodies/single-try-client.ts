/** A client that sends each request once. */
import { Agent, request as httpRequest } from 'node:http';
import { onTestFinished } from 'vitest';

/** Asks the gateway with a client that repeats nothing. */
export function createClient(origin: string, key: string, maxSockets = 16) {
  const agent = new Agent({ keepAlive: true, maxSockets });
  onTestFinished(() => agent.destroy());
  const { hostname, port } = new URL(origin);
  let sent = 0;
  return {
    get sent() {
      return sent;
    },
    /** Sends to a path of its own. Resolves to the status, or 0 if the gateway closed the connection. */
    send(method: string, body?: string | Buffer): Promise<number> {
      const headers = { Authorization: `Bearer ${key}`, ...(body && { 'Content-Length': body.length }) };
      const path = `/api/${sent++}`;
      return new Promise((resolve) => {
        const request = httpRequest({ hostname, port, agent, method, path, headers }, (res) => {
          res.resume().once('close', () => resolve(res.statusCode ?? 0));
        });
        request.once('error', () => resolve(0));
        request.end(body);
      });
    },
  };
}
