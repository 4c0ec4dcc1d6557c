import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { startWithWorkers } from '../process/workers/support.ts';
import { startGatewayProcess } from '../support/gateway-process.ts';

const BURST = 1000;

function kernelLimit(): number {
  try {
    return Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8'));
  } catch {
    return 0;
  }
}

it.skipIf(kernelLimit() <= BURST).each([
  ['one process', async () => await startGatewayProcess()],
  ['workers', async () => (await startWithWorkers()).gateway],
])(
  'with %s, a burst of 1,000 connections waits in the backlog, although nothing accepts them for a moment',
  async (_, start) => {
    const gateway = await start();
    gateway.signal('SIGSTOP');
    const { hostname, port } = new URL(gateway.public);
    let connected = 0;
    const sockets: Socket[] = [];
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
    });
    for (let i = 0; i < BURST; i++) {
      const socket = connect(Number(port), hostname, () => connected++);
      sockets.push(socket.on('error', () => {}));
    }
    await expect.poll(() => connected, { timeout: 10_000 }).toBe(BURST);
    gateway.signal('SIGCONT');
  },
);
