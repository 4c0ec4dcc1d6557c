/**
 * Workers read what callers send, so a fault in them must not give away more than serving takes. Each inherited the whole
 * environment of the primary, and its configuration had the admin token: whoever could read a worker's memory or
 * /proc/<pid>/environ held the admin API.
 */
import { open, readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { newWebhookSecret } from '../../src/formats/webhook-signature.ts';
import { agentOfTest, PATIENCE, request, startWithWorkers, workersOf } from '../process/workers/support.ts';
import { startShared } from '../support/cleanup.ts';
import { ADMIN_TOKEN } from '../support/gateway.ts';

const WEBHOOK_SECRET = newWebhookSecret();
const UPSTREAM_SECRET = 'Basic c2VjcmV0LW9mLXRoZS1iYWNrZW5k';
const env = { TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN, DATABASE_PASSWORD: 'unrelated-secret', TZ: 'UTC' };
// Needs /proc.
const onLinux = it.skipIf(process.platform !== 'linux');

const started = startShared(async () => {
  const system = await startWithWorkers({
    env,
    config: {
      upstream: { urls: ['http://127.0.0.1:1'], credentials: 'replace', authorization: UPSTREAM_SECRET },
      notices: { endpoints: [{ url: 'https://ops.example/', secret: WEBHOOK_SECRET }] },
    },
  });
  const pids = (await workersOf(system.gateway)).map(({ pid }) => pid ?? 0);
  return { ...system, pids };
});

onLinux('the environment of a worker has the variables of the runtime and no other', async () => {
  const { pids } = started();
  for (const pid of pids) {
    const names = (await readFile(`/proc/${pid}/environ`, 'utf8')).split('\0').map((each) => each.split('=')[0]);
    const ofNode = ['NODE_CHANNEL_FD', 'NODE_CHANNEL_SERIALIZATION_MODE', 'NODE_UNIQUE_ID', 'NODE_COMPILE_CACHE'];
    expect(new Set(names)).toEqual(new Set(['PATH', 'TZ', ...ofNode, '']));
  }
});

onLinux(
  'the memory of a worker has the secrets that it serves with, and neither the admin token nor a webhook secret',
  async () => {
    const { gateway, key, pids } = started();
    // The primary has used the token, and a reload sends the configuration to the workers again.
    gateway.signal('SIGHUP');
    await expect.poll(gateway.output, PATIENCE).toMatch(/"trigger":"signal"/);
    await request(agentOfTest({ keepAlive: false }), gateway.public, key);
    for (const pid of pids) {
      const found = await findInMemory(pid, [UPSTREAM_SECRET, ADMIN_TOKEN, WEBHOOK_SECRET]);
      expect(found).toEqual([UPSTREAM_SECRET]);
    }
  },
);

/** Those of the texts that stand in the writable memory of a process, in Latin-1. */
async function findInMemory(pid: number, texts: readonly string[]): Promise<string[]> {
  const memory = await open(`/proc/${pid}/mem`);
  const found = new Set<string>();
  // Pieces overlap, so that no text is cut.
  const piece = Buffer.alloc(4 * 1024 * 1024);
  const step = piece.length - Math.max(...texts.map((text) => text.length));
  for (const line of (await readFile(`/proc/${pid}/maps`, 'utf8')).split('\n')) {
    const [, from, to] = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line) ?? [];
    if (from === undefined || to === undefined) continue;
    const end = Number.parseInt(to, 16);
    for (let at = Number.parseInt(from, 16); at < end; at += step) {
      // Not every page of a mapping can be read.
      const read = await memory.read(piece, 0, Math.min(piece.length, end - at), at).catch(() => undefined);
      const content = piece.subarray(0, read?.bytesRead ?? 0);
      for (const text of texts) if (content.includes(text)) found.add(text);
    }
  }
  await memory.close();
  return [...found].toSorted((a, b) => texts.indexOf(a) - texts.indexOf(b));
}
