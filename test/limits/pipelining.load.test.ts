import type { ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import { startSystem } from '../support/system.ts';
import { openSession, request } from './support.ts';

const COUNT = 600;
const CHUNKS = 320;
/** More than Node.js keeps for a connection before it pauses on its own, and resumes. */
const LONG = 'x'.repeat(50_000);

/** Resolves when the number has stayed the same for 20 timers; a process that is busy makes that later, never sooner. */
async function quiet(read: () => number): Promise<void> {
  let before: number;
  do {
    before = read();
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setTimeout(resolve, 10));
  } while (read() !== before);
}

it('hundreds of pipelined requests get their responses in order, and at most limits.pipelined are at the backend at once', async () => {
  let underWay = 0;
  let most = 0;
  const { gateway, key, backend } = await startSystem({
    config: { limits: { pipelined: 5 } },
    answer(req, res) {
      most = Math.max(most, ++underWay);
      // The later ones of a turn are answered first.
      setTimeout(
        () => {
          underWay--;
          res.end(`this is ${req.url}`);
        },
        5 - (backend.seen.length % 5),
      );
    },
  });
  const session = await openSession(gateway.public);
  const ids = Array.from({ length: COUNT }, (_, i) => `c${i}`);
  session.send(ids.map((id) => request(key, `/v1/conversations/${id}`)).join(''));
  await expect.poll(() => session.statuses().length, { timeout: 30_000 }).toBe(COUNT);
  const answered = [...session.received().matchAll(/this is \/api\/v1\/conversations\/(c\d+)/g)].map(([, id]) => id);
  expect(answered).toEqual(ids);
  expect(new Set(session.statuses())).toEqual(new Set([200]));
  expect(most).toBe(5);
  expect(session.isClosed()).toBe(false);
});

it.each([
  ['', []],
  // Node.js treats these in another way.
  [', with Content-Length: 0', ['Content-Length: 0']],
])(
  'what a client pipelines beyond%s is not read before there is room: it waits with the client',
  async (_, fields) => {
    const held: ServerResponse[] = [];
    let isHeld = true;
    const { gateway, key } = await startSystem({
      // So many may wait that it is not their number that ends it.
      config: { limits: { pipelined: 2, connections: 100_000 } },
      answer: (_req, res) => void (isHeld ? held.push(res) : res.end(LONG)),
    });
    const session = await openSession(gateway.public);
    const chunk = request(key, '/v1/conversations', `X-Filler: ${'x'.repeat(2000)}`, ...fields).repeat(100);
    let sent = 0;
    // 64 MB: more than the systems on both sides take.
    for (let i = 0; i < CHUNKS; i++) session.socket.write(chunk, () => sent++);
    await expect.poll(() => held.length).toBe(2);
    await quiet(() => sent);
    const taken = sent;
    expect(taken).toBeLessThan(CHUNKS / 2);
    isHeld = false;
    for (const res of held) res.end(LONG);
    await expect.poll(() => session.statuses().length, { timeout: 50_000 }).toBeGreaterThan(400);
    isHeld = true;
    await quiet(() => sent);
    // As much was read as there was room for.
    expect(sent - taken).toBeLessThan(session.statuses().length / 100 + 10);
    expect(session.isClosed()).toBe(false);
    session.socket.destroy();
  },
  120_000,
);

it('a connection that a refusal ends takes no further request, and those before it are answered', async () => {
  const { gateway, key, backend } = await startSystem({
    answer: (_req, res) => void setTimeout(() => res.end('good'), 20),
  });
  const session = await openSession(gateway.public);
  const bad = request(key).replace('Host: a', 'Host: a, b');
  session.send(request(key) + bad + request(key).repeat(5));
  await session.closed;
  expect(session.statuses()).toEqual([200, 400]);
  expect(backend.seen).toHaveLength(1);
});

it('bytes that are no request end the connection after the responses to the requests before them', async () => {
  const { gateway, key, backend } = await startSystem({
    config: { limits: { pipelined: 1 } },
    answer: (_req, res) => void setTimeout(() => res.end('good'), 20),
  });
  const session = await openSession(gateway.public);
  session.send(`${request(key).repeat(3)}no request\r\n\r\n`);
  await session.closed;
  expect(session.statuses()).toEqual([200, 200, 200, 400]);
  expect(backend.seen).toHaveLength(3);
});
