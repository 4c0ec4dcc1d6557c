/**
 * A customer chooses where its notices go. Without these checks it could let the gateway call what only the gateway can
 * reach (the metadata service of a cloud, the admin listener, Redis), learn from the outcome what is there, or hold
 * deliveries of others up. Real sockets: what must not be reached is a listener that sees no connection.
 */
import { createSocket } from 'node:dgram';
import dns from 'node:dns/promises';
import { once } from 'node:events';
import http, { type RequestListener } from 'node:http';
import https from 'node:https';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { Webhook } from 'standardwebhooks';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { createDeliver, type WebhookEndpoint } from '../../../src/customers/notices/delivery.ts';
import { newWebhookSecret, parseWebhookSecret } from '../../../src/formats/webhook-signature.ts';
import { createCertificate } from '../../support/certificates.ts';

const SECRET = newWebhookSecret();
const MESSAGE = { id: 'msg_1', body: '{"type":"quota.exceeded"}' };
const NAME = 'hooks.example';
const certificate = createCertificate({ name: NAME });
const authorities = getCACertificates('default');
const servers: Server[] = [];
const sockets = new Set<Socket>();

beforeAll(() => setDefaultCACertificates([...authorities, certificate.cert]));
afterAll(() => setDefaultCACertificates(authorities));
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
});

/** Listens on 127.0.0.1 and counts the connections. */
async function listen<S extends Server>(server: S) {
  servers.push(server);
  const seen = { connections: 0 };
  server.on('connection', (socket) => {
    seen.connections += 1;
    sockets.add(socket);
    socket.on('error', () => {});
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { seen, port: (server.address() as AddressInfo).port };
}

const receiver = (handle: RequestListener) => listen(http.createServer(handle));
const respond = (status: number, headers: Record<string, string> = {}) =>
  receiver((req, res) => req.resume().on('end', () => res.writeHead(status, headers).end()));

/** A resolver that resolves every name to these addresses, one set after the other. */
function resolver(...answers: string[][]) {
  const asked: string[] = [];
  return {
    asked,
    resolve: async (host: string) => {
      asked.push(host);
      const answer = answers[Math.min(asked.length, answers.length) - 1] ?? [];
      return answer.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    },
  };
}

type Options = Partial<Parameters<typeof createDeliver>[0]>;

function deliver(endpoint: Partial<WebhookEndpoint>, options: Options = {}) {
  const key = parseWebhookSecret(SECRET);
  const { signal } = new AbortController();
  return createDeliver({ clock: systemClock, closing: signal, ...options })(
    { url: '', secrets: key ? [key] : [], allowPrivate: false, ...endpoint },
    MESSAGE,
  );
}

/** Delivers to an endpoint of the operator, which may be local. */
const deliverTo = ({ port }: { port: number }, options?: Options) =>
  deliver({ url: `http://127.0.0.1:${port}/hook?a=b`, allowPrivate: true }, options);

describe('a delivery', () => {
  test('is a POST that the reference library verifies, on a connection that is closed', async () => {
    const requests: object[] = [];
    const target = await receiver(async (req, res) => {
      const body = (await req.setEncoding('utf8').toArray()).join('');
      const verified = new Webhook(SECRET).verify(body, req.headers as Record<string, string>);
      requests.push({ method: req.method, url: req.url, verified, connection: req.headers.connection });
      res.writeHead(204).end();
    });
    expect(await deliverTo(target)).toEqual({ kind: 'delivered' });
    const verified = { type: 'quota.exceeded' };
    expect(requests).toEqual([{ method: 'POST', url: '/hook?a=b', verified, connection: 'close' }]);
  });

  test.each([
    [200, { kind: 'delivered' }],
    [410, { kind: 'gone' }],
    [404, { kind: 'failed', reason: 'the response had status 404', retryAfterMs: null }],
    [500, { kind: 'failed', reason: 'the response had status 500', retryAfterMs: null }],
  ])('with status %s has the outcome %o', async (status, outcome) => {
    expect(await deliverTo(await respond(status))).toEqual(outcome);
  });

  test('reports Retry-After in seconds and as a date', async () => {
    const clock = { nowMs: () => Date.parse('2030-01-01T00:00:00Z') };
    const waits: unknown[] = [];
    for (const value of [
      '120',
      'Tue, 01 Jan 2030 00:02:00 GMT',
      'Mon, 31 Dec 2029 00:00:00 GMT',
      '-5',
      '1e3',
      'soon',
    ]) {
      waits.push(await deliverTo(await respond(503, { 'retry-after': value }), { clock }));
    }
    const reason = 'the response had status 503';
    const wait = (retryAfterMs: number | null) => ({ kind: 'failed', reason, retryAfterMs });
    expect(waits).toEqual([wait(120_000), wait(120_000), wait(null), wait(null), wait(null), wait(null)]);
  });

  test('fails when nothing listens, and when the receiver resets the connection', async () => {
    const reset = await listen(createServer((socket) => socket.resetAndDestroy()));
    expect(await deliverTo(reset)).toMatchObject({ reason: 'the request failed: ECONNRESET' });
    const [server] = servers.splice(0);
    await new Promise((resolve) => server?.close(resolve));
    expect(await deliverTo(reset)).toMatchObject({ reason: 'the request failed: ECONNREFUSED' });
  });

  test('is aborted when the gateway stops', async () => {
    const closing = new AbortController();
    const target = await receiver(() => closing.abort());
    expect(await deliverTo(target, { closing: closing.signal })).toMatchObject({ kind: 'failed' });
  });
});

describe('a delivery to a customer', () => {
  const url = (port: number) => `https://${NAME}:${port}/hook`;
  const NOT_PUBLIC = { kind: 'failed', reason: 'the host of the endpoint has no public address', retryAfterMs: null };

  test.each(['127.0.0.1', '::ffff:127.0.0.1', '::ffff:7f00:1', '0.0.0.0'])(
    'opens no connection when the name resolves to %s',
    async (address) => {
      const target = await listen(createServer((socket) => socket.destroy()));
      expect(await deliver({ url: url(target.port) }, resolver([address]))).toEqual(NOT_PUBLIC);
      // With the check switched off the same name reaches the listener: the test would notice.
      await deliver({ url: url(target.port), allowPrivate: true }, resolver([address]));
      expect(target.seen.connections).toBe(1);
    },
  );

  test.each([['169.254.169.254'], ['::', '::1'], ['10.0.0.1', 'fd00::1'], ['64:ff9b::7f00:1'], []])(
    'fails when the name resolves to %s alone',
    async (...addresses) => expect(await deliver({ url: url(443) }, resolver(addresses))).toEqual(NOT_PUBLIC),
  );

  test('resolves the name once, and connects to that address', async () => {
    const target = await listen(https.createServer(certificate, (_req, res) => res.end()));
    const names = resolver(['127.0.0.1'], ['169.254.169.254']);
    expect(await deliver({ url: url(target.port), allowPrivate: true }, names)).toEqual({ kind: 'delivered' });
    expect(names.asked).toEqual([NAME]);
  });

  test('verifies the certificate for the name', async () => {
    const target = await listen(
      https.createServer(createCertificate({ name: 'other.example' }), (_req, res) => res.end()),
    );
    const outcome = await deliver({ url: url(target.port), allowPrivate: true }, resolver(['127.0.0.1']));
    expect(outcome).toMatchObject({ kind: 'failed', reason: 'the request failed: DEPTH_ZERO_SELF_SIGNED_CERT' });
  });

  test.each(['http://hooks.example/', 'https://127.1/', 'https://[::1]/', 'not a URL'])(
    'sends nothing to %s, whatever wrote it into the record',
    async (text) => {
      const names = resolver(['127.0.0.1']);
      expect(await deliver({ url: text }, names)).toMatchObject({ reason: 'the URL of the endpoint is not allowed' });
      expect(names.asked).toEqual([]);
    },
  );

  test('fails if another program damaged the id of the notice in the store', async () => {
    const deliver = createDeliver({ clock: systemClock, closing: new AbortController().signal });
    const endpoint = { url: url(443), secrets: [new Uint8Array(32)], allowPrivate: false };
    expect(await deliver(endpoint, { ...MESSAGE, id: 'msg_\u{1f4a5}' })).toMatchObject({ kind: 'failed' });
  });

  test('sends nothing without a secret', async () => {
    expect(await deliver({ url: url(443), secrets: [] })).toMatchObject({ reason: 'the endpoint has no secret' });
  });
});

describe('a receiver', () => {
  test.each([301, 302, 303, 307, 308])('cannot redirect (%s) the gateway to another listener', async (status) => {
    const inner = await listen(createServer());
    const target = await respond(status, { location: `http://127.0.0.1:${inner.port}/latest/meta-data/` });
    const reason = `the response had status ${status}`;
    expect(await deliverTo(target)).toEqual({ kind: 'failed', reason, retryAfterMs: null });
    expect(inner.seen.connections).toBe(0);
  });

  test.each([
    ['never responds', () => {}],
    ['sends a header without end', (socket) => void setInterval(() => socket.write('x'), 5).unref()],
    [
      'sends informational responses without end',
      (socket) => void setInterval(() => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'), 5).unref(),
    ],
  ] satisfies [string, (socket: { write(text: string): unknown }) => void][])(
    'that %s is left at the deadline',
    async (_, act) => {
      const target = await listen(
        createServer((socket) => {
          socket.write('HTTP/1.1 ');
          act(socket);
        }),
      );
      expect(await deliverTo(target, { timeoutMs: 100 })).toMatchObject({ kind: 'failed' });
    },
  );

  test('that responds but never ends the body is left at the deadline, and its status counts', async () => {
    const target = await receiver((_req, res) => void res.writeHead(200).write('x'));
    expect(await deliverTo(target, { timeoutMs: 5000 })).toEqual({ kind: 'delivered' });
  });

  test('that sends a body without end is cut off after 64 KiB', async () => {
    let sent = 0;
    const target = await receiver((_req, res) => {
      res.on('error', () => {});
      const more = () => {
        while (!res.destroyed && res.write(Buffer.alloc(16_384))) sent += 16_384;
      };
      res.on('drain', more);
      more();
    });
    expect(await deliverTo(target)).toEqual({ kind: 'delivered' });
    expect(sent).toBeLessThan(16 * 1024 * 1024);
  });

  test.each([
    ['a header of a megabyte', `HTTP/1.1 200 OK\r\nx: ${'a'.repeat(1_000_000)}\r\n\r\n`, 'HPE_HEADER_OVERFLOW'],
    ['no HTTP', 'SSH-2.0-OpenSSH_9.2\r\n', 'HPE_INVALID_CONSTANT'],
  ])('that sends %s fails the delivery', async (_, text, code) => {
    const target = await listen(createServer((socket) => socket.end(text)));
    expect(await deliverTo(target)).toMatchObject({ kind: 'failed', reason: `the request failed: ${code}` });
  });

  test('that switches protocols fails the delivery', async () => {
    const text = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n';
    const target = await listen(createServer((socket) => socket.end(text)));
    expect(await deliverTo(target, { timeoutMs: 500 })).toMatchObject({ kind: 'failed' });
  });

  test('whose name is resolved slowly is left at the deadline', async () => {
    const options = { resolve: () => new Promise<never>(() => {}), timeoutMs: 100 };
    const outcome = await deliver({ url: `https://${NAME}/` }, options);
    expect(outcome).toMatchObject({ reason: 'no response within 0.1 seconds' });
  });
});

describe('a host name', () => {
  const waiting: (() => void)[] = [];
  afterEach(() => {
    for (const end of waiting.splice(0)) end();
  });

  test('whose name server never responds occupies no thread of the process', async () => {
    // Each of these would hold a thread for many seconds.
    const server = createSocket('udp4').bind(0, '127.0.0.1');
    await once(server, 'listening');
    waiting.push(() => server.close());
    const before = dns.getServers();
    dns.setServers([`127.0.0.1:${server.address().port}`]);
    waiting.push(() => dns.setServers(before));
    const closing = new AbortController();
    const key = parseWebhookSecret(SECRET);
    const send = createDeliver({ clock: systemClock, closing: closing.signal });
    const endpoint = { secrets: key ? [key] : [], allowPrivate: false };
    const deliveries = Array.from({ length: 50 }, (_, n) =>
      send({ ...endpoint, url: `https://h${n}.example/` }, MESSAGE),
    );
    await once(server, 'message');
    // Uses the thread pool.
    await dns.lookup('localhost');
    closing.abort();
    for (const outcome of await Promise.all(deliveries)) expect(outcome.kind).toBe('failed');
  });
});
