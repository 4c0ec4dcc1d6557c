/** A load balancer of the simplest kind: whole connections, in turn, to those whose /readyz says that they take them. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';

const POLL_MS = 200;

interface Target {
  readonly public: string;
  readonly ops: string;
}

export interface Balancer {
  readonly url: string;
  add(target: Target): void;
  remove(target: Target): void;
  /** Whether new connections go there. */
  uses(target: Target): boolean;
  close(): Promise<void>;
}

export async function startBalancer(): Promise<Balancer> {
  const ready = new Map<Target, boolean>();
  const sockets = new Set<Socket>();
  let turn = 0;
  let closed = false;

  const server = createServer((caller) => {
    const targets = [...ready].flatMap(([target, isReady]) => (isReady ? [target] : []));
    const target = targets[turn++ % targets.length];
    if (target === undefined) return void caller.destroy();
    const { hostname, port } = new URL(target.public);
    const upstream = connect(Number(port), hostname);
    for (const [socket, other] of [
      [caller, upstream],
      [upstream, caller],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => other.destroy()).on('close', () => sockets.delete(socket));
      socket.pipe(other);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  const poll = async () => {
    while (!closed) {
      await Promise.all(
        [...ready.keys()].map(async (target) => {
          const isReady = await fetch(`${target.ops}/readyz`).then(
            ({ ok }) => ok,
            () => false,
          );
          if (ready.has(target)) ready.set(target, isReady);
        }),
      );
      await setTimeout(POLL_MS);
    }
  };
  const polling = poll();

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    add: (target) => void ready.set(target, false),
    remove: (target) => void ready.delete(target),
    uses: (target) => ready.get(target) ?? false,
    async close() {
      closed = true;
      for (const socket of sockets) socket.destroy();
      server.close();
      await polling;
    },
  };
}
