/**
 * What a request body costs the operator listeners before its client is known.
 *
 * - Each chunk of a body was kept as an object: logins in chunks of one byte took 5.6 MB a connection, without any
 *   credential, and 150 of them ended a process of 512 MiB. So did bodies that wait while a token is looked up.
 * - 256 requests whose body never comes occupied all connections of the portal or the admin listener for 30 s.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { readBody } from '../../src/http/listener/held-body.ts';
import { createOperatorServer } from '../../src/http/listener/operator-server.ts';
import { type PortalGateway, PUBLIC_URL, startPortalGateway } from '../portal/support.ts';
import { startBackend } from '../support/backend.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_TOKEN, EMBEDDED_STORE } from '../support/gateway.ts';
import { exchangeRaw } from '../support/raw-http.ts';

const CONNECTIONS = 256;
const opened: { close(): Promise<unknown> }[] = [];
let gateway: PortalGateway;

beforeAll(async () => {
  const store = await EMBEDDED_STORE.start();
  const backend = await startBackend();
  gateway = await startPortalGateway(store.url, backend.url, {});
  opened.push(store, backend, gateway);
});
afterAll(async () => {
  for (const each of opened.reverse()) await each.close();
});

const LOGINS = [
  { name: 'portal', path: '/portal/session', limitBytes: 1024 },
  { name: 'admin', path: '/console/session', limitBytes: 16 * 1024 },
] as const;

function headOf(path: string, headers: string): string {
  return `POST ${path} HTTP/1.1\r\nHost: ${new URL(PUBLIC_URL).host}\r\nContent-Type: application/json\r\n${headers}\r\n\r\n`;
}

function chunksOf(text: string, size = 1): string {
  return text.replace(new RegExp(`[^]{1,${size}}`, 'g'), (part) => `${part.length.toString(16)}\r\n${part}\r\n`);
}

async function open(url: string, bytes: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => {});
  // Otherwise its end would not be noticed.
  socket.resume();
  await once(socket, 'connect');
  socket.write(bytes);
  return socket;
}

describe.each(LOGINS)('a login at the $name listener', ({ name, path, limitBytes }) => {
  const chunked = headOf(path, 'Transfer-Encoding: chunked');

  test('is refused beyond its limit, before the rest of the body comes, and the connection is closed', async () => {
    const url = gateway[name] ?? '';
    for (const bytes of [
      headOf(path, `Content-Length: ${limitBytes + 1}`),
      chunked + chunksOf('x'.repeat(limitBytes + 1), 1000),
    ]) {
      const answer = await exchangeRaw(url, bytes);
      expect([answer.status, JSON.parse(answer.body).code]).toEqual([413, 'body_too_large']);
      expect(answer.closed).toBe(true);
    }
  });

  test('in chunks of one byte is read while it is short', async () => {
    const body = JSON.stringify({ [name === 'admin' ? 'token' : 'code']: 'x'.repeat(200) });
    const answer = await exchangeRaw(gateway[name] ?? '', `${chunked + chunksOf(body)}0\r\n\r\n`);
    expect(answer.status).toBe(401);
  });

  test('of which most is framing is refused', async () => {
    const extension = `1;${'e'.repeat(100)}\r\nx\r\n`;
    const answer = await exchangeRaw(gateway[name] ?? '', chunked + extension.repeat(limitBytes - 1));
    expect([400, 413]).toContain(answer.status);
  });
});

test('only an authenticated request of the admin API may have 64 KiB', async () => {
  const bytes = headOf('/admin/v1/customers', `Content-Length: 65536\r\nAuthorization: Bearer ${ADMIN_TOKEN}`);
  const answer = await exchangeRaw(gateway.admin ?? '', `${bytes}{"id":"${'a'.repeat(65_527)}"}`);
  expect(answer.status).toBe(422);
});

test.each([1, 7, 60_000])(
  'a body in chunks of %i bytes that waits costs one buffer, and is read whole',
  async (size) => {
    const wanted = Promise.withResolvers<void>();
    const content = '{"id":"0123456789"}'.repeat(size === 1 ? 150 : 3000);
    await using stack = new AsyncDisposableStack();
    const queued: number[] = [];
    const server = createOperatorServer(
      async (req, res) => {
        await wanted.promise;
        queued.push(req.readableLength);
        const body = await readBody(req, res, { limitBytes: 64 * 1024, isKnown: true });
        res.end(String(body));
      },
      systemClock,
      stack,
    );
    stack.defer(() => void server.close());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const received = Promise.withResolvers<void>();
    server.on('request', (req) => req.once('data', () => received.resolve()));
    const bytes = `${headOf('/', 'Transfer-Encoding: chunked') + chunksOf(content, size)}0\r\n\r\n`;
    const answer = exchangeRaw(`http://127.0.0.1:${port}`, bytes);
    await received.promise;
    wanted.resolve();
    expect((await answer).body).toContain(content);
    expect(queued).toEqual([0]);
  },
);

test.each(LOGINS)(
  'half bodies of unknown clients do not keep others from the $name listener',
  async ({ name, path }) => {
    const url = gateway[name] ?? '';
    const half = `${headOf(path, 'Content-Length: 100')}{`;
    const sockets = await Promise.all(Array.from({ length: CONNECTIONS }, () => open(url, half)));
    const probe = () =>
      exchangeRaw(url, `GET /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`).then(
        ({ status }) => status,
        () => 0,
      );
    await eventually('another client has a connection', async () => {
      const status = await probe();
      return status === 401 || status === 404;
    });
    // Not because all of them have timed out.
    expect(sockets.filter((socket) => socket.closed).length).toBeLessThan(CONNECTIONS / 2);
  },
);
