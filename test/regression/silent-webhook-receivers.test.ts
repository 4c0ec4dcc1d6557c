/**
 * Customers let their webhooks accept connections and never respond. A hundred such deliveries occupied all places for 15
 * seconds, again and again, and all other notices waited: those of other customers, and those of the operator.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock, systemScheduler } from '../../src/base/clock.ts';
import { CustomerPlaces } from '../../src/customers/notices/customer-places.ts';
import { createDeliver } from '../../src/customers/notices/delivery.ts';
import { newNotice } from '../../src/customers/notices/notice.ts';
import { NoticeSender } from '../../src/customers/notices/notice-sender.ts';
import { embeddedNotices } from '../../src/store/embedded/notices.ts';
import { openEmbeddedContext } from '../support/embedded-context.ts';

const SILENT = 130;
/** No delivery may end by it while a test runs. */
const NEVER_MS = 600_000;
const OFTEN = { interval: 50 };

async function listen(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => sockets.add(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** A sender of which each customer has its own endpoint, at a host with this name. */
async function startSender(hostOfCustomer: (customer: string) => string) {
  const silent = { connections: 0 };
  const silentPort = await listen(createTcpServer(() => void silent.connections++));
  const received: string[] = [];
  const port = await listen(
    createServer((req, res) => {
      received.push(`${req.url} ${req.headers['webhook-id']}`);
      req.resume().on('end', () => res.writeHead(204).end());
    }),
  );
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-places-'));
  const context = openEmbeddedContext(join(folder, 'notices.db'), systemClock.nowMs);
  const notices = embeddedNotices(context);
  const closing = new AbortController();
  const endpoint = (url: string) => ({ url, secrets: [new Uint8Array(32)], allowPrivate: true });
  const failures: unknown[] = [];
  const sender = new NoticeSender({
    notices,
    records: { findCustomerRecord: async (id) => ({ id, plan: 'starter', suspended: false }) },
    storeIsUp: () => true,
    endpoints: () => [endpoint(`http://operator.example:${port}/operator`)],
    customerEndpoint: async ({ id }) =>
      id === 'good'
        ? endpoint(`http://good.example:${port}/good`)
        : endpoint(`http://${hostOfCustomer(id)}:${silentPort}/`),
    planOf: ({ plan }) => plan,
    deliver: createDeliver({
      clock: systemClock,
      closing: closing.signal,
      resolve: async () => [{ address: '127.0.0.1', family: 4 }],
      timeoutMs: NEVER_MS,
    }),
    unsetCustomerEndpoint: async () => {},
    audit: async () => {},
    observer: { attempted() {}, dropped() {}, counted() {}, failed: (error) => failures.push(error) },
    clock: systemClock,
    scheduler: systemScheduler,
    random: () => 0,
  });
  onTestFinished(async () => {
    const closed = sender.close();
    closing.abort();
    await closed;
    context.database.close();
    rmSync(folder, { recursive: true });
    expect(failures).toEqual([]);
  });
  const add = async (customer: string) => {
    const notice = newNotice('quota.threshold', Date.now(), { customer, plan: null });
    const untilMs = Date.now() + NEVER_MS;
    await notices.addOnce({ customer, marks: [notice.id], untilMs, notice });
    return notice.id;
  };
  return { sender, silent, received, add };
}

test('silent receivers of one host delay neither notices to another host nor those to the operator', async () => {
  const { sender, silent, received, add } = await startSender(() => 'silent.example');
  const ids: string[] = [];
  for (let n = 0; n < SILENT; n++) ids.push(await add(`silent-${n}`));
  const last = await add('good');
  sender.start();
  await expect.poll(() => received, OFTEN).toContain(`/good ${last}`);
  await expect.poll(() => new Set(received).size, OFTEN).toBe(SILENT + 2);
  for (const id of [...ids, last]) expect(received).toContain(`/operator ${id}`);
  expect(silent.connections).toBe(20);
}, 60_000);

test('silent receivers of many hosts delay no notice to the operator', async () => {
  const { sender, silent, received, add } = await startSender((customer) => `${customer}.example`);
  for (let n = 0; n < SILENT; n++) await add(`silent-${n}`);
  sender.start();
  await expect.poll(() => new Set(received).size, OFTEN).toBe(SILENT);
  expect(silent.connections).toBe(60);
}, 60_000);

test('a place that is left can be taken again, whatever spells its host', () => {
  const places = new CustomerPlaces();
  const taken = Array.from({ length: 20 }, () => places.take('https://hooks.example/a'));
  expect(taken).not.toContain(undefined);
  expect(places.take('https://HOOKS.example:8443/b')).toBeUndefined();
  taken[0]?.();
  expect(places.take('https://hooks.example/c')).toBeDefined();
  expect(places.take('https://hooks.example/c')).toBeUndefined();
  expect(places.take('https://other.example/')).toBeDefined();
});
