/** tools/over-admission finds what a gateway lets through above its limit, and nothing where there is none. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { attack } from '../../tools/over-admission/attacks.ts';
import { mostInAnyPeriod, mostInAnyWindow, startCountingBackend } from '../../tools/over-admission/counting-backend.ts';

const LIMIT = 10;
const WINDOW_MS = 3_600_000;
const LATEST_MS = 60_000;

/** Returns whether one more request is admitted at `nowMs`. */
type Limiter = (nowMs: number) => boolean;

function fixedWindow(): Limiter {
  let beganMs = Number.NEGATIVE_INFINITY;
  let used = 0;
  return (nowMs) => {
    if (nowMs >= beganMs + WINDOW_MS) {
      beganMs = nowMs;
      used = 0;
    }
    used += 1;
    return used <= LIMIT;
  };
}

/** Counts each for as much longer as it may take to the backend, whatever else the machine does. */
function slidingWindow(): Limiter {
  const admitted: number[] = [];
  return (nowMs) => {
    if (admitted.filter((atMs) => atMs > nowMs - WINDOW_MS - LATEST_MS).length >= LIMIT) return false;
    admitted.push(nowMs);
    return true;
  };
}

/** Each instance counts for itself, if `limiters` are several. */
async function startGateways(limiters: readonly Limiter[], nowMs: () => number, backendPort: number) {
  return Promise.all(
    [0, 1].map(async (i) => {
      const limiter = limiters[i % limiters.length];
      const server = createServer(async (_, response) => {
        if (!limiter?.(nowMs())) return void response.writeHead(429).end();
        const forwarded = await fetch(`http://127.0.0.1:${backendPort}`);
        response.end(await forwarded.text());
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      onTestFinished(() => void server.close());
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    }),
  );
}

async function overshoot(newLimiter: () => Limiter, instances: number): Promise<Record<string, number>> {
  let offsetMs = 0;
  const nowMs = () => performance.now() + offsetMs;
  const backend = await startCountingBackend(0, nowMs);
  onTestFinished(() => backend[Symbol.asyncDispose]());
  const limiters = Array.from({ length: instances }, newLimiter);
  const target = {
    origins: await startGateways(limiters, nowMs, backend.port),
    path: '/',
    headers: async () => {
      offsetMs += 2 * WINDOW_MS;
      return {};
    },
    limit: LIMIT,
    windowMs: WINDOW_MS,
    backend,
    pass: async (ms: number) => {
      offsetMs += ms;
    },
    faults: [],
    beginLateMs: 40,
  };
  const findings = await attack(target);
  return Object.fromEntries(findings.map((finding) => [finding.attack, finding.most - LIMIT]));
}

test('of a fixed window, nearly twice the limit gets through at its edge', async () => {
  expect(await overshoot(fixedWindow, 1)).toMatchObject({ burst: 0, 'bursts at the edge of a window': LIMIT - 1 });
});

test('of instances that count each for itself, twice the limit gets through', async () => {
  expect(await overshoot(slidingWindow, 2)).toMatchObject({ burst: LIMIT });
});

test('of a shared sliding window, the limit and no more gets through in any attack', async () => {
  expect(Object.values(await overshoot(slidingWindow, 1))).toEqual([0, 0, 0, 0, 0, 0, 0]);
});

test('the fullest window is found wherever it begins', () => {
  expect(mostInAnyWindow([0, 5, 9, 10, 14, 30], 10)).toBe(4);
  expect(mostInAnyWindow([], 10)).toBe(0);
});

test('the fullest period is one of those that follow each other', () => {
  expect(mostInAnyPeriod([0, 5, 9, 10, 14, 30], 10, 0)).toBe(3);
  expect(mostInAnyPeriod([0, 5, 9, 10, 14, 30], 10, 5)).toBe(4);
  expect(mostInAnyPeriod([], 10, 0)).toBe(0);
});
