/** Many and large uploads, against a gateway in a process of its own: what they cost it, and what others notice. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { ANY_ROUTE, openClient } from '../bodies/support.ts';
import { createCustomerWithKey } from '../support/admin.ts';
import { type GatewayProcessSettings, KEY, startGatewayProcess } from '../support/gateway-process.ts';
import { leastOf } from '../support/least-of.ts';

const MB = 1_000_000;
const PATIENT = { timeout: 20_000 };

async function rssMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return (Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024) / MB;
}

/** Samples the memory of a process until the result is called, which returns all samples. */
function watchRss(pid: number): () => Promise<number[]> {
  const samples: number[] = [];
  let isWatching = true;
  const watching = (async () => {
    for (; isWatching; await pause(100)) samples.push(await rssMb(pid));
  })();
  return async () => {
    isWatching = false;
    await watching;
    return samples;
  };
}

type Answer = NonNullable<GatewayProcessSettings['answer']>;

function start(answer?: Answer) {
  const routes = [{ ...ANY_ROUTE, max_body_bytes: 100_000 * MB }];
  return startGatewayProcess({ config: { routes }, ...(answer && { answer }) });
}

const counting: Answer = (req, res) => {
  let bytes = 0;
  req.on('data', ({ length }) => {
    bytes += length;
  });
  req.on('end', () => res.end(`"bytes":${bytes}`));
};

const SIZE_MB = 1_000;

test(`a body of ${SIZE_MB} MB passes through flat memory`, async () => {
  const gateway = await start(counting);
  const upload = openClient(gateway.public, KEY, 'PUT /api/a', `Content-Length: ${SIZE_MB * MB}`);
  const before = await rssMb(gateway.pid);
  const stop = watchRss(gateway.pid);
  const part = Buffer.alloc(MB);
  for (let sent = 0; sent < SIZE_MB; sent++) if (!upload.socket.write(part)) await once(upload.socket, 'drain');
  expect(await upload.until(/"bytes":\d+/)).toContain(`"bytes":${SIZE_MB * MB}`);
  const samples = await stop();
  const half = samples.length / 2;
  const [early, late] = [Math.max(...samples.slice(0, half)), Math.max(...samples.slice(half))];
  expect(late).toBeLessThan(early + 32);
  expect(late).toBeLessThan(before + 128);
});

test('100 uploads to a backend that reads nothing cost the memory of a few reads each', async () => {
  const UPLOADS = 100;
  const part = Buffer.alloc(20 * MB);
  async function moreMb(): Promise<number> {
    const gateway = await start((req) => void req.pause());
    const before = await rssMb(gateway.pid);
    const stop = watchRss(gateway.pid);
    const clients = Array.from({ length: UPLOADS }, () =>
      openClient(gateway.public, KEY, 'PUT /api/a', `Content-Length: ${part.length}`),
    );
    for (const client of clients) client.send(part);
    await expect.poll(() => gateway.backend.seen.length, PATIENT).toBe(UPLOADS);
    await pause(3_000);
    const most = Math.max(...(await stop()));
    for (const { socket } of clients) socket.destroy();
    return most - before;
  }
  // The least of some: on a busy machine, garbage is collected late. All that is sent is ten times as much.
  expect(await leastOf(3, 200, moreMb)).toBeLessThan(200);
});

test('a flood of refused uploads costs no more memory than is buffered of each', async () => {
  const gateway = await start();
  const before = await rssMb(gateway.pid);
  const stop = watchRss(gateway.pid);
  const part = Buffer.alloc(2 * MB);
  for (let round = 0; round < 10; round++) {
    const uploads = Array.from({ length: 100 }, () =>
      openClient(gateway.public, 'not-a-key', 'PUT /api/a', `Content-Length: ${part.length}`),
    );
    for (const upload of uploads) upload.send(part);
    for (const upload of uploads) {
      expect(await upload.until(/\r\n\r\n/)).toMatch(/^HTTP\/1\.1 (401|429) /);
      upload.socket.end();
    }
  }
  const most = Math.max(...(await stop()));
  expect(most).toBeLessThan(before + 150);
  expect(gateway.backend.seen).toHaveLength(0);
});

describe('1,000 uploads of one customer at 1 byte a second', () => {
  test('reach no connection to the backend, and others wait no longer', async () => {
    const gateway = await start();
    const slow = await createCustomerWithKey(gateway, { id: 'slow', plan: 'unlimited' });
    async function p99Ms(): Promise<number> {
      const tookMs: number[] = [];
      for (let i = 0; i < 1_000; i++) {
        const startedMs = performance.now();
        const response = await fetch(`${gateway.public}/api/a`, { method: 'POST', headers, body: 'abc' });
        expect(response.status).toBe(200);
        await response.arrayBuffer();
        tookMs.push(performance.now() - startedMs);
      }
      return tookMs.toSorted((a, b) => a - b)[990] ?? 0;
    }
    const headers = { Authorization: `Bearer ${KEY}` };
    await p99Ms();
    const alone = await p99Ms();
    const uploads = Array.from({ length: 1_000 }, () =>
      openClient(gateway.public, slow, 'POST /api/slow', 'Content-Length: 9999'),
    );
    await expect
      .poll(() => uploads.filter(({ received }) => received.includes('503')).length, PATIENT)
      .toBe(1_000 - 2_048 / 4);
    const sending = setInterval(() => {
      for (const upload of uploads) if (upload.received === '') upload.send('a');
    }, 1_000);
    await pause(1_500);
    const mostMs = 3 * alone + 10;
    // The least of some: other programs may take the machine meanwhile.
    const beside = await leastOf(3, mostMs, async () => {
      const seenBefore = gateway.backend.seen.length;
      const p99 = await p99Ms();
      expect(gateway.backend.seen.length - seenBefore).toBe(1_000);
      return p99;
    });
    clearInterval(sending);
    expect(gateway.backend.seen.some(({ url }) => url === '/api/slow')).toBe(false);
    expect(beside).toBeLessThan(mostMs);
  });
});
