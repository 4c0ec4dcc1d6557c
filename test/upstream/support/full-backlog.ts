import { connect, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { onTestFinished } from 'vitest';

/** Listens with the smallest backlog and then blocks its thread, so that nothing is ever accepted. */
const LISTENER = `
  const { parentPort } = require('node:worker_threads');
  const server = require('node:net').createServer();
  server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
    parentPort.postMessage(server.address().port);
    setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000));
  });
`;

/** A port where further connections stay in the making: the backlog is full, and SYNs are dropped. */
export async function fillBacklog(): Promise<number> {
  const worker = new Worker(LISTENER, { eval: true });
  const port = await new Promise<number>((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
  });
  const sockets: Socket[] = [];
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await worker.terminate();
  });
  // The kernel completes a few connections on its own; full is when one stays without answer.
  for (;;) {
    const socket = connect(port, '127.0.0.1');
    sockets.push(socket.on('error', () => {}));
    const connected = await new Promise<boolean>((resolve) => {
      // Sockets are looked at once more: after a standstill, timers run before them.
      const timer = setTimeout(() => setImmediate(resolve, false), 300);
      socket.once('connect', () => {
        clearTimeout(timer);
        resolve(true);
      });
    });
    if (!connected) return port;
  }
}
