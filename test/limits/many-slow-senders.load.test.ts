/**
 * Ten thousand callers that open connections and send slowly, again and again; fewer where the system allows fewer open
 * files. `SLOW_SENDERS` sets another number.
 */
import { readFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { connect, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { type GatewayProcess, KEY, startGatewayProcess } from '../support/gateway-process.ts';

const WANTED = Number(process.env.SLOW_SENDERS ?? 10_000);
/** For what the processes have open besides. */
const SPARE_FILES = 1500;

function openFilesAllowed(): number {
  const limits = readFileSync('/proc/self/limits', 'utf8');
  return Number(/^Max open files\s+\d+\s+(\d+)/m.exec(limits)?.[1] ?? Infinity);
}

const STARTS = ['', 'G', 'GET /v1/conv', 'GET /v1/conversations HTTP/1.1\r\nHost: a\r\nX-Slow: '];

/** Keeps `count` slow connections open: a byte now and then on each, and a new one a second after it was ended. */
function sendSlowly(gateway: GatewayProcess, count: number) {
  const { hostname, port } = new URL(gateway.public);
  const open = new Set<Socket>();
  let isOver = false;
  function begin(index: number): void {
    if (isOver) return;
    const socket = connect(Number(port), hostname);
    open.add(socket);
    socket.on('error', () => {}).resume();
    socket.write(STARTS[index % STARTS.length] ?? '');
    socket.once('close', () => {
      open.delete(socket);
      setTimeout(() => begin(index), 1000);
    });
  }
  for (let i = 0; i < count; i++) begin(i);
  const trickling = setInterval(() => {
    for (const socket of open) if (Math.random() < 0.1) socket.write('x');
  }, 1000);
  return {
    open,
    end() {
      isOver = true;
      clearInterval(trickling);
      for (const socket of open) socket.destroy();
    },
  };
}

function ask(gateway: GatewayProcess, agent: Agent | false): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const options = { agent, headers: { authorization: `Bearer ${KEY}` } };
    const asked = get(`${gateway.public}/v1/conversations`, options, (res) => {
      res.resume().once('end', () => resolve(res.statusCode));
    });
    asked.once('error', reject);
  });
}

it('connections of slow senders do not keep another client from being served, even above limits.connections', async () => {
  const senders = Math.min(WANTED, openFilesAllowed() - SPARE_FILES);
  const gateway = await startGatewayProcess({ config: { limits: { connections: Math.floor(senders * 0.8) } } });
  const kept = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => kept.destroy());
  expect(await ask(gateway, kept)).toBe(200);
  const slow = sendSlowly(gateway, senders);
  onTestFinished(() => slow.end());
  // Full, and newcomers take places already.
  await expect
    .poll(() => gateway.metric('tollgate_connections_cut_total{reason="displaced"}'), { timeout: 30_000 })
    .toBeGreaterThan(0);
  await expect.poll(() => gateway.metric('tollgate_connections'), { timeout: 30_000 }).toBeGreaterThan(senders * 0.7);
  const statuses = new Map<number | undefined, number>();
  for (let i = 0; i < 200; i++) {
    for (const agent of [false, kept] as const) {
      const status = await ask(gateway, agent);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  expect(statuses).toEqual(new Map([[200, 400]]));
  expect(await gateway.metric('tollgate_connections')).toBeLessThanOrEqual(senders * 0.8 + 512);
}, 180_000);
