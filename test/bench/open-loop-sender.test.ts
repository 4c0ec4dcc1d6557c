import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { runLoad } from '../../bench/load.ts';
import { leastOf } from '../support/least-of.ts';

const SENDER = fileURLToPath(new URL('../../bench/open-loop-sender.ts', import.meta.url));

/** A backend that stalls once: responses to requests that arrive within `stallMs` of the first one wait until then. */
async function startBackend(stallMs: number): Promise<{ url: string; received: () => number }> {
  const waiting: ServerResponse[] = [];
  let isStalled = true;
  let received = 0;
  const server = createServer((_req, res) => {
    if (received++ === 0) {
      setTimeout(() => {
        isStalled = false;
        for (const response of waiting) response.end('{}');
      }, stallMs);
    }
    res.setHeader('Content-Length', 2);
    if (isStalled) waiting.push(res);
    else res.end('{}');
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, received: () => received };
}

function send(url: string, connections: number, durationMs: number, warmUpMs = 0) {
  const openLoop = { sender: [process.execPath, SENDER] as const, requestsPerSecond: 500, warmUpMs };
  return runLoad({ wrk: ['wrk'], url, connections, durationMs, key: 'key', openLoop });
}

test('a stall counts for each request that is due in it, also for those without a connection', async () => {
  const { url } = await startBackend(400);
  const { p50, read, refused } = await send(url, 2, 450);
  expect({ read, refused }).toEqual({ read: 0, refused: 0 });
  // About 225 requests are due, nearly all in the stall: they wait for 200 ms on average, though only two were sent.
  expect(p50).toBeGreaterThan(100_000);
});

test('requests without a response at the end count with their latency so far', async () => {
  const { url, received } = await startBackend(60_000);
  const { requests, p50, p999 } = await send(url, 8, 600);
  expect(received()).toBe(8);
  expect(requests).toBe(0);
  expect(p50).toBeGreaterThan(150_000);
  expect(p999).toBeGreaterThan(400_000);
});

test('the load before the latencies count is sent, and its stalls do not count', async () => {
  const measure = async () => {
    const { url, received } = await startBackend(300);
    const { p50, read } = await send(url, 8, 100, 1000);
    expect(read).toBe(0);
    // Some 400, of which the stall admits 8; fewer on a busy machine.
    expect(received()).toBeGreaterThan(50);
    return p50;
  };
  // A busy machine may stand still just when latencies count.
  expect(await leastOf(5, 100_000, measure)).toBeLessThan(100_000);
});
