/** Keys that nobody knows, each sent once. `UNKNOWN_KEYS=1000000` for the full number. */
import { connect } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { startGatewayProcess } from '../support/gateway-process.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { writeCustomer, writeKey } from '../support/redis-system.ts';

const COUNT = Number(process.env.UNKNOWN_KEYS ?? 16_000);
/** Until here caches of 10,000 keys and as many addresses fill, and code grows to the size that it keeps. */
const WARM_UP = Math.max(12_000, COUNT / 10);
const CONNECTIONS = 16;
const PIPELINED = 16;
const STATUS = /HTTP\/1\.1 (\d{3}) /g;
/** One byte less than what {@link STATUS} takes. */
const LONGEST_CUT = 'HTTP/1.1 401'.length;
/** 131 bytes for each key, less than an entry in a map costs; 1.3 MiB were seen, however many keys there were. */
const MOST_GROWTH_BYTES = 2 * 1024 * 1024;
/** The gateway says on a signal what it holds when all garbage is collected. */
const SAY_HELD = `process.on('SIGUSR2', () => {
  gc();
  const { heapUsed, external } = process.memoryUsage();
  console.log('held: ' + (heapUsed + external));
});`;

/** Sends `count` requests that `make` gives, over a few connections; resolves to how often each status was answered. */
async function flood(url: string, count: number, make: (i: number) => string): Promise<Map<string, number>> {
  const { hostname, port } = new URL(url);
  const statuses = new Map<string, number>();
  let next = 0;
  let answered = 0;
  await new Promise<void>((resolve, reject) => {
    for (let c = 0; c < CONNECTIONS; c++) {
      const socket = connect(Number(port), hostname);
      onTestFinished(() => void socket.destroy());
      const send = (requests: number) => {
        let bytes = '';
        for (let i = 0; i < requests && next < count; i++) bytes += make(next++);
        if (bytes !== '') socket.write(bytes);
      };
      let rest = '';
      socket.setEncoding('latin1').on('data', (text: string) => {
        const seen = [...(rest + text).matchAll(STATUS)];
        // A status line that is cut at the end of what came is read with the next.
        rest = text.slice(-LONGEST_CUT).replace(STATUS, '');
        for (const [, status = ''] of seen) statuses.set(status, (statuses.get(status) ?? 0) + 1);
        answered += seen.length;
        if (answered === count) resolve();
        send(seen.length);
      });
      socket.once('error', reject);
      send(PIPELINED);
    }
  });
  return statuses;
}

it(`different unknown keys from different addresses leave memory flat and the store unwritten (${COUNT})`, async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const gateway = await startGatewayProcess({
    env: { NODE_OPTIONS: `--expose-gc --import=data:text/javascript,${encodeURIComponent(SAY_HELD)}` },
    config: {
      store: { url: redis.url, timeout_ms: 10_000 },
      listen: { trusted_proxies: ['127.0.0.1'] },
      // As many refused requests are kept in the store, and twice as many in memory.
      requests: { entries: 100 },
    },
  });
  await writeCustomer(redis, 'good', { plan: 'unlimited' });
  await writeKey(redis, 'key-of-good', 'good');
  await expect.poll(async () => (await fetch(`${gateway.ops}/readyz`)).status).toBe(200);
  // Every few seconds, all refusals together are added to one count of the hour, and the last ones to the failed requests.
  const isOfAll = (name: string) => name.startsWith('tollgate:usage-total:') || name === 'tollgate:requests';
  const contents = async () => ((await redis.command('KEYS', '*')) as string[]).filter((name) => !isOfAll(name)).sort();
  const memory = async () => {
    const held = () => [...gateway.output().matchAll(/^held: (\d+)$/gm)].map(([, bytes]) => Number(bytes));
    const before = held().length;
    gateway.signal('SIGUSR2');
    await expect.poll(() => held().length).toBe(before + 1);
    return held().at(-1) ?? 0;
  };
  const request = (i: number) =>
    `GET /v1/conversations HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer unknown-${i}-${COUNT}\r\n` +
    `X-Forwarded-For: ${10 + (i % 200)}.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}\r\n\r\n`;

  const warm = await flood(gateway.public, WARM_UP, (i) => request(i + COUNT));
  const [before, held] = [await contents(), await memory()];
  await redis.command('CONFIG', 'RESETSTAT');
  const statuses = await flood(gateway.public, COUNT, request);
  const grown = (await memory()) - held;
  const writes = await countWrites(redis);

  expect([...warm.keys(), ...statuses.keys()].every((status) => status === '401' || status === '429')).toBe(true);
  expect([...statuses.values()].reduce((sum, each) => sum + each, 0)).toBe(COUNT);
  expect(await contents()).toEqual(before);
  expect(writes).toBeLessThan(COUNT / 100);
  expect(gateway.backend.seen).toHaveLength(0);
  expect(grown, 'bytes held').toBeLessThan(MOST_GROWTH_BYTES);
  const good = await fetch(`${gateway.public}/v1/conversations`, { headers: { authorization: 'Bearer key-of-good' } });
  expect(good.status).toBe(200);
  if (COUNT >= 100_000) process.stdout.write(`${JSON.stringify({ COUNT, held, grown, statuses: [...statuses] })}\n`);
}, 600_000);

/** All calls of commands that write. The gateway itself makes some a second, such as the announcement of the instance. */
async function countWrites(redis: RedisServer): Promise<number> {
  const commandstats = String(await redis.command('INFO', 'commandstats'));
  const writing = new Set((await redis.command('COMMAND', 'LIST', 'FILTERBY', 'ACLCAT', 'write')) as string[]);
  return [...commandstats.matchAll(/^cmdstat_([a-z|_-]+):calls=(\d+)/gm)]
    .filter(([, name = '']) => writing.has(name))
    .reduce((sum, [, , calls]) => sum + Number(calls), 0);
}
