import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAdminApp } from '../../src/admin/admin-app.ts';
import type { AdminParts } from '../../src/admin/parts.ts';
import type { Clock } from '../../src/clock.ts';
import { createLogger } from '../../src/observability/logger.ts';
import { effectiveLimit } from '../../src/quota/limit.ts';
import { openEmbeddedStore } from '../../src/store/embedded/embedded-store.ts';
import type { RecordStore } from '../../src/store/store.ts';

export const TOKEN = 'the-admin-token';
export const NOW = '2026-03-01T12:00:00.000Z';

const POLICY = {
  plans: new Map([
    ['starter', { requestsPerHour: 1000 }],
    ['enterprise', { requestsPerHour: 'custom' as const }],
  ]),
  overrides: new Map([['vip', { requestsPerHour: 120_000 }]]),
};

/** An answer's body, as far as the tests look into it. */
// biome-ignore lint/suspicious/noExplicitAny: the tests compare members of every type, and a wrong one fails them
export type JsonAnswer = any;

export interface TestAdmin {
  readonly origin: string;
  readonly records: RecordStore;
  readonly logs: string[];
  call(method: string, path: string, body?: unknown): Promise<{ status: number; headers: Headers; body: JsonAnswer }>;
  close(): Promise<void>;
}

/** The admin listener over an embedded store of its own, at a time that stands still. */
export async function startAdmin(overrides: Partial<AdminParts> = {}): Promise<TestAdmin> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-admin-'));
  const clock: Clock = { nowMs: () => Date.parse(NOW), monotonicMs: () => 0 };
  const observer = { called() {}, up() {} };
  const store = await openEmbeddedStore({ file: join(folder, 'store.sqlite'), clock, observer });
  const logs: string[] = [];
  const app = createAdminApp({
    token: TOKEN,
    records: store.records,
    effectiveLimit: (customer) => effectiveLimit(customer, POLICY),
    usage: async (_customer, limit) => ({
      limit,
      used: 3,
      remaining: limit - 3,
      resetSeconds: 41,
      windowSeconds: 3600,
    }),
    status: () => ({
      version: '1.2.3',
      startedAtMs: Date.parse('2026-03-01T11:00:00Z'),
      uptimeSeconds: 3600.7,
      config: { file: 'gateway.yaml', hash: 'abc123', loadedAtMs: Date.parse('2026-03-01T11:30:00Z') },
      store: store.status(),
      instances: 3,
      upstreams: [{ url: 'http://conversations:3000' }],
    }),
    logger: createLogger({ level: 'info', destination: { write: (line) => void logs.push(line) } }),
    clock,
    randomBytes: (size) => randomBytes(size),
    ...overrides,
  });
  const server = createServer(app);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    origin,
    records: store.records,
    logs,
    async call(method, path, body) {
      const answer = await fetch(origin + path, {
        method,
        headers: {
          authorization: `Bearer ${TOKEN}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
      const text = await answer.text();
      return { status: answer.status, headers: answer.headers, body: text === '' ? undefined : JSON.parse(text) };
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await store.close();
      await rm(folder, { recursive: true });
    },
  };
}
