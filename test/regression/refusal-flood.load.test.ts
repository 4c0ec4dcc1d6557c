/**
 * Whoever reaches the public port could fill the disk without a key: each refused request wrote a line of some 300 bytes,
 * and one client sends tens of thousands a second, 17 GB of access log an hour.
 */
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { type AccessRecord, createAccessLog } from '../../src/observability/access-log.ts';
import { bearer } from '../support/admin.ts';
import { readMetric } from '../support/metrics.ts';
import { startSystem } from '../support/system.ts';

const FLOOD = 3000;
/** Of each window, at most so many refusals get a line. */
const WINDOW_MS = 10_000;
const LINES = 100;

it('a flood without a key writes few lines, and log and metrics account for each request', async () => {
  const { gateway, key } = await startSystem();
  const { hostname, port } = new URL(gateway.public);
  const socket = connect(Number(port), hostname);
  const head = `GET /v1/conversations HTTP/1.1\r\nHost: ${hostname}\r\n`;
  const startedMs = performance.now();
  for (let sent = 1; sent < FLOOD; sent++) socket.write(`${head}\r\n`);
  socket.write(`${head}Connection: close\r\n\r\n`);
  expect((await text(socket)).match(/HTTP\/1\.1 401 /g)).toHaveLength(FLOOD);
  const windows = 1 + Math.floor((performance.now() - startedMs) / WINDOW_MS);
  // Neither another code of the same client nor a good key is summed up with it.
  expect((await fetch(`${gateway.public}/nowhere`)).status).toBe(404);
  expect((await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) })).status).toBe(200);

  const refused = Object.values(await readMetric(gateway, 'tollgate_refusals_total'));
  expect(refused.toSorted((a, b) => a - b)).toEqual([1, FLOOD]);
  await gateway.close();
  const lines = gateway.logs.filter(({ msg }) => msg === 'request' || msg === 'further refusals');
  const written = lines.filter(({ msg, code }) => msg === 'request' && code === 'missing_key').length;
  expect(written).toBeGreaterThanOrEqual(LINES);
  expect(written).toBeLessThanOrEqual(LINES * windows);
  const sums = lines.filter(({ msg }) => msg === 'further refusals');
  const sum = { status: 401, code: 'missing_key', source: 'gateway', client: '127.0.0.0/8' };
  expect(sums).toMatchObject(sums.map(() => sum));
  expect(sums.reduce((total, { requests }) => total + Number(requests), written)).toBe(FLOOD);
  expect(lines.filter(({ code }) => code !== 'missing_key')).toMatchObject([{ status: 404 }, { status: 200 }]);
});

/** An access log whose windows end when the test says so. */
function accessLog() {
  const lines: Record<string, unknown>[] = [];
  let endWindow: (() => void) | undefined;
  const log = createAccessLog({
    destination: { write: (line) => void lines.push(JSON.parse(line)) },
    mode: 'all',
    clock: { nowMs: () => 0 },
    scheduler: {
      after(_, action) {
        endWindow = action;
        return { cancel() {} };
      },
    },
  });
  return {
    write: (record: Partial<AccessRecord>) =>
      log.write({
        requestId: 'r',
        method: 'GET',
        route: 'none',
        status: 401,
        source: 'gateway',
        plan: 'none',
        clientAddress: '',
        ...record,
      }),
    endWindow: () => endWindow?.(),
    take: () => lines.splice(0),
  };
}

it('a flood from a hundred thousand addresses writes a bounded number of lines', () => {
  const log = accessLog();
  for (let n = 0; n < 100_000; n++) {
    log.write({
      problem: 'missing_key',
      clientAddress: `2001:db8:${(n >> 16).toString(16)}:${(n & 0xffff).toString(16)}::1`,
    });
  }
  expect(log.take()).toHaveLength(1000);
  log.endWindow();
  expect(log.take()).toEqual([
    {
      level: 'info',
      time: '1970-01-01T00:00:00.000Z',
      status: 401,
      code: 'missing_key',
      source: 'gateway',
      requests: 99_000,
      msg: 'further refusals',
    },
  ]);
});

it('customers that are refused keep their lines during such a flood, and are summed up by name', () => {
  const log = accessLog();
  for (let n = 0; n < 5000; n++) log.write({ problem: 'missing_key', clientAddress: `192.0.${n >> 8}.${n & 255}` });
  log.take();
  for (let n = 0; n < 150; n++) log.write({ status: 429, problem: 'quota_exceeded', customer: 'acme', keyId: 'key_1' });
  expect(log.take()).toHaveLength(100);
  log.endWindow();
  expect(log.take()).toContainEqual(
    expect.objectContaining({ status: 429, code: 'quota_exceeded', customer: 'acme', requests: 50 }),
  );
});

it('a new window begins with lines in full, and requests that were sent upstream always have their own', () => {
  const log = accessLog();
  const refused = { problem: 'missing_key', clientAddress: '192.0.2.1' } as const;
  for (let n = 0; n < 101; n++) log.write(refused);
  log.take();
  log.endWindow();
  expect(log.take()).toHaveLength(1);
  log.write(refused);
  log.endWindow();
  expect(log.take()).toHaveLength(1);

  const failed = { status: 504, problem: 'gateway_timeout', customer: 'acme', upstreamMs: 1 } as const;
  for (let n = 0; n < 500; n++) log.write(failed);
  expect(log.take()).toHaveLength(500);
});
