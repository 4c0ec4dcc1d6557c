import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { call, openCaller } from './support/caller.ts';
import { startGateway } from './support/gateway.ts';
import { startHttpUpstream, startRawUpstream } from './support/upstreams.ts';

const GET = 'GET / HTTP/1.1\r\nHost: caller.test\r\n\r\n';

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()));
}

test('an upstream exchange ends within 100 ms after its client disconnects', async () => {
  let connected = Promise.withResolvers<Socket>();
  const upstream = await startRawUpstream((socket) => connected.resolve(socket));
  const gateway = await startGateway(upstream.port);
  const tookMs: number[] = [];
  // The best of several: a busy machine may delay some.
  for (let round = 0; round < 5; round++) {
    connected = Promise.withResolvers();
    const caller = openCaller(gateway.port);
    caller.write(GET);
    const end = closed(await connected.promise);
    const leftAt = performance.now();
    caller.destroy();
    await end;
    tookMs.push(performance.now() - leftAt);
    expect(await gateway.nextOutcome()).toMatchObject({ kind: 'client_gone', wasSent: true, status: undefined });
  }
  expect(Math.min(...tookMs)).toBeLessThan(100);
});

test('a client that disconnects while its response is paused frees the connection for the next request', async () => {
  const paused = Promise.withResolvers<void>();
  const abandoned = Promise.withResolvers<void>();
  let requests = 0;
  const upstream = await startHttpUpstream((_req, res) => {
    if (++requests > 1) {
      res.end('next');
      return;
    }
    res.once('close', abandoned.resolve);
    const chunk = Buffer.alloc(64 * 1024);
    const pump = (): void => {
      while (res.write(chunk));
      // The gateway takes no more for a while: its caller does not read.
      const timer = setTimeout(paused.resolve, 100);
      res.once('drain', () => {
        clearTimeout(timer);
        pump();
      });
    };
    pump();
  });
  const gateway = await startGateway(upstream, { maxConnections: 1 });
  const caller = openCaller(gateway.port);
  caller.write(GET);
  await once(caller, 'data');
  caller.pause();
  await paused.promise;
  caller.resetAndDestroy();
  expect(await gateway.nextOutcome()).toMatchObject({ kind: 'client_gone', wasSent: true, status: 200 });
  await abandoned.promise;
  expect((await call(gateway.port)).content.toString()).toContain('next');
});

test('a request whose client disconnects in the queue is never sent upstream', async () => {
  const held = Promise.withResolvers<ServerResponse>();
  const urls: (string | undefined)[] = [];
  const upstream = await startHttpUpstream((req, res) => {
    urls.push(req.url);
    if (req.url === '/first') held.resolve(res);
    else res.end('third');
  });
  const forwarded = new Map<string, () => void>();
  const queued = new Promise<void>((resolve) => forwarded.set('/second', resolve));
  const gateway = await startGateway(upstream, {
    maxConnections: 1,
    request: (url) => {
      forwarded.get(url)?.();
      return {};
    },
  });
  const first = call(gateway.port, '/first');
  const firstOutcome = gateway.nextOutcome();
  const upstreamAnswer = await held.promise;

  const leaver = openCaller(gateway.port);
  leaver.write('GET /second HTTP/1.1\r\nHost: caller.test\r\n\r\n');
  await queued;
  leaver.destroy();
  expect(await gateway.nextOutcome()).toMatchObject({ kind: 'client_gone', wasSent: false, upstreamMs: 0 });

  const third = call(gateway.port, '/third');
  upstreamAnswer.end('first');
  await Promise.all([first, firstOutcome, third]);
  expect(urls).toEqual(['/first', '/third']);
});

test('a pipelined request whose response has to wait ends with its connection too', async () => {
  const sockets: Socket[] = [];
  const both = Promise.withResolvers<void>();
  const upstream = await startRawUpstream((socket) => {
    sockets.push(socket);
    if (sockets.length === 2) both.resolve();
  });
  const gateway = await startGateway(upstream.port);
  const caller = openCaller(gateway.port);
  caller.write(GET + GET);
  await both.promise;
  const outcomes = [gateway.nextOutcome(), gateway.nextOutcome()];
  const ends = sockets.map(closed);
  caller.destroy();
  expect((await Promise.all(outcomes)).map((outcome) => outcome.kind)).toEqual(['client_gone', 'client_gone']);
  await Promise.all(ends);
});

test('a truncated pipelined response closes the connection after the one before it', async () => {
  const first = Promise.withResolvers<Socket>();
  const upstream = await startRawUpstream((socket, head) => {
    if (head.startsWith('GET /first')) first.resolve(socket);
    else socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbroken');
  });
  const gateway = await startGateway(upstream.port);
  const caller = openCaller(gateway.port);
  const end = closed(caller.on('error', () => {}));
  caller.resume().write('GET /first HTTP/1.1\r\nHost: a\r\n\r\nGET /second HTTP/1.1\r\nHost: a\r\n\r\n');
  const outcomes = [gateway.nextOutcome(), gateway.nextOutcome()];
  const upstreamSocket = await first.promise;
  expect(await outcomes[1]).toMatchObject({ kind: 'failed', failure: 'reset', headSent: true });
  expect(caller.closed).toBe(false);
  upstreamSocket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole');
  expect(await outcomes[0]).toMatchObject({ kind: 'completed' });
  await end;
});

test('a request whose client disconnects before it is forwarded is not sent upstream', async () => {
  const upstream = await startRawUpstream(() => {});
  const gateway = await startGateway(upstream.port, { beforeForwarding: (req) => closed(req.socket.destroy()) });
  openCaller(gateway.port)
    .on('error', () => {})
    .write(GET);
  expect(await gateway.nextOutcome()).toMatchObject({ kind: 'client_gone', wasSent: false });
  expect(upstream.connections()).toBe(0);
});

test('a client that does not read causes backpressure on the upstream, and gets the whole response in the end', async () => {
  const total = 64 * 1024 * 1024;
  const chunk = Buffer.alloc(64 * 1024, 'x');
  let written = 0;
  const stalled = Promise.withResolvers<number>();
  const upstream = await startHttpUpstream((_req, res) => {
    res.setHeader('Content-Length', total);
    const pump = (): void => {
      while (written < total) {
        written += chunk.length;
        if (res.write(chunk)) continue;
        const timer = setTimeout(() => stalled.resolve(written), 200);
        res.once('drain', () => {
          clearTimeout(timer);
          pump();
        });
        return;
      }
      res.end();
      stalled.resolve(written);
    };
    pump();
  });
  const gateway = await startGateway(upstream);
  const caller = openCaller(gateway.port);
  caller.pause().write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  // What the kernel buffers on both legs takes some; the rest must still be with the upstream.
  expect(await stalled.promise).toBeLessThan(total / 2);
  let received = 0;
  caller.on('data', (data) => {
    received += data.length;
  });
  await closed(caller.resume());
  expect(received).toBeGreaterThan(total);
  expect(await gateway.nextOutcome()).toMatchObject({ kind: 'completed', contentBytes: total });
});
