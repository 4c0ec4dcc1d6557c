/**
 * Responses are written from the buffer that they were read into. A client that takes nothing is one whose socket is corked:
 * what is written to it stays where it is.
 */
import { randomBytes } from 'node:crypto';
import { get } from 'node:http';
import type { Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { openCaller } from './support/caller.ts';
import { startGateway } from './support/gateway.ts';
import { startHttpUpstream } from './support/upstreams.ts';

/** More than is sent as text, and than half a read. */
const BYTES = 60_000;

/** Content is what each path says, by its framing. `/held` waits for `release`. */
async function startSystem(contents: Record<string, Buffer>, maxConnections = 1) {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const upstream = await startHttpUpstream(async (req, res) => {
    const [, name = '', framing] = req.url?.split('/') ?? [];
    const content = contents[name] ?? Buffer.alloc(0);
    if (framing === 'held') await released;
    if (framing !== 'chunked') res.setHeader('Content-Length', content.length);
    res.write(content);
    res.end();
  });
  const sockets = new Map<string, Socket>();
  const gateway = await startGateway(upstream, {
    maxConnections,
    beforeForwarding: async ({ url = '', socket }) => {
      sockets.set(url, socket);
      if (url.endsWith('?slow')) socket.cork();
    },
  });
  return {
    gateway,
    release,
    uncork: (path: string) => sockets.get(path)?.uncork(),
    clientSocket: (path: string) => sockets.get(path),
    async download(path: string): Promise<Buffer> {
      const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
      get({ port: gateway.port, host: '127.0.0.1', agent: false, path }, (res) => {
        buffer(res).then(resolve, reject);
      }).on('error', reject);
      return promise;
    },
  };
}

test('what a client has not taken of a response stays, whatever its connection reads next', async () => {
  const second = randomBytes(BYTES);
  const contents: Record<string, Buffer> = { most: randomBytes(32_000_000), second };
  const { gateway, download, clientSocket } = await startSystem(contents);
  const read = (path: string) => {
    const caller = openCaller(gateway.port).pause();
    caller.write(`GET ${path} HTTP/1.1\r\nHost: caller.test\r\nConnection: close\r\n\r\n`);
    return caller;
  };
  const most = read('/most');
  const taken = () => {
    const { bytesWritten = 0, writableLength = 0 } = clientSocket('/most') ?? {};
    return bytesWritten - writableLength;
  };
  await expect.poll(taken).toBeGreaterThan(0);
  for (let before = -1; before < taken(); await pause(50)) before = taken();
  const room = taken();
  most.destroy();
  // Some end where the kernel takes no more: all was received, and not all is written.
  for (let length = room - 200_000; length < room + 50_000; length += 16_000) {
    const content = randomBytes(length);
    contents[length] = content;
    const caller = read(`/${length}`);
    await expect.poll(() => clientSocket(`/${length}`)).toBeDefined();
    const others = [1, 2, 3].map(() => download('/second'));
    await pause(20);
    const received = await buffer(caller);
    expect(received.subarray(-length).equals(content), `${length} bytes`).toBe(true);
    for (const other of others) expect((await other).equals(second)).toBe(true);
  }
});

test('so does a response that waits behind another one of its client', async () => {
  const [first, second, third] = [randomBytes(BYTES), randomBytes(BYTES), randomBytes(BYTES)];
  const { gateway, release, download, clientSocket } = await startSystem({ first, second, third }, 2);
  const caller = openCaller(gateway.port);
  const received = buffer(caller);
  const head = 'HTTP/1.1\r\nHost: caller.test\r\n';
  caller.write(`GET /first/held ${head}\r\nGET /second/length ${head}Connection: close\r\n\r\n`);
  await expect.poll(() => clientSocket('/second/length')).toBeDefined();
  // On the connection that the second response came by: the other one is in use.
  for (let i = 0; i < 3; i++) expect((await download('/third/length')).equals(third)).toBe(true);
  release();
  const bytes = await received;
  expect(bytes.includes(first)).toBe(true);
  expect(bytes.includes(second)).toBe(true);
});

test.each(['length', 'chunked'])(
  'a client that takes nothing holds up the backend after one read, and gets every byte: %s',
  async (framing) => {
    const content = randomBytes(8_000_000);
    const { download, uncork, clientSocket } = await startSystem({ large: content });
    const path = `/large/${framing}?slow`;
    const slow = download(path);
    await expect.poll(() => clientSocket(path)?.writableLength ?? 0).toBeGreaterThan(0);
    await pause(50);
    const socket = clientSocket(path);
    for (let i = 0; i < 20; i++) {
      expect(socket?.writableLength).toBeLessThan(80_000);
      uncork(path);
      socket?.cork();
      await pause(1);
    }
    uncork(path);
    expect((await slow).equals(content)).toBe(true);
  },
);
