import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * The system gives higher ports to whoever does not ask for one, so nobody gets these by chance. A member of a Redis Cluster
 * also takes the port 10,000 above its own: that is lower, too.
 */
const FIRST = 10_000;
/** Each worker of the tests takes its own thousand. */
const COUNT = 1000;
const WORKERS = 10;

let taken = randomInt(COUNT);

/** A port that nothing listens on at this moment, and that no other server is given meanwhile. */
export async function freePort(): Promise<number> {
  const first = FIRST + COUNT * (Number(process.env.VITEST_POOL_ID ?? 0) % WORKERS);
  for (let attempt = 0; attempt < COUNT; attempt += 1) {
    const port = first + (taken++ % COUNT);
    if (await isFree(port)) return port;
  }
  throw new Error(`no port is free from ${first} to ${first + COUNT - 1}`);
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
