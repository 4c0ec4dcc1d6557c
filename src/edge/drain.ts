import type { Server } from 'node:http';

const LOOK_MS = 50;

/**
 * Stops accepting and lets what is under way finish: every further answer closes its connection, idle connections are
 * closed at once, and what is left at the deadline is cut. Resolves when no connection is left.
 */
export function drainServer(server: Server, deadlineMs: number): Promise<void> {
  server.prependListener('request', (_req, res) => {
    res.shouldKeepAlive = false;
  });
  return new Promise((resolve) => {
    // Node.js closes idle connections once at close(); those that become idle later are found by looking again.
    const look = setInterval(() => server.closeIdleConnections(), LOOK_MS);
    const cut = setTimeout(() => server.closeAllConnections(), deadlineMs);
    server.close(() => {
      clearInterval(look);
      clearTimeout(cut);
      resolve();
    });
  });
}
