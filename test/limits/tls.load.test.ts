import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, request as requestOverTls } from 'node:https';
import { type AddressInfo, connect as connectTcp } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type ConnectionOptions, connect } from 'node:tls';
import { expect, it, onTestFinished } from 'vitest';
import { createCertificate, type TestCertificate } from '../support/certificates.ts';
import { ADMIN_TOKEN } from '../support/gateway.ts';
import { readMetric } from '../support/metrics.ts';
import { type SystemSettings, startSystem } from '../support/system.ts';

const ca = createCertificate({ name: 'a test authority' });

/** A folder that holds a certificate as Kubernetes does: names that are links through a link that is swapped. */
async function startSecret(first: TestCertificate) {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-tls-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  let version = 0;
  async function put({ cert, key }: TestCertificate): Promise<void> {
    const content = `..${++version}`;
    await mkdtemp(join(folder, content)).then(async (real) => {
      await writeFile(join(real, 'tls.crt'), cert + ca.cert);
      await writeFile(join(real, 'tls.key'), key);
      await symlink(real, join(folder, '..next'));
      await rename(join(folder, '..next'), join(folder, '..data'));
    });
  }
  await put(first);
  for (const name of ['tls.crt', 'tls.key']) await symlink(join('..data', name), join(folder, name));
  return { files: { cert_file: join(folder, 'tls.crt'), key_file: join(folder, 'tls.key') }, put };
}

async function startTlsSystem(certificate: TestCertificate, settings: SystemSettings = {}) {
  const secret = await startSecret(certificate);
  const listen = { ...settings.config?.listen, tls: secret.files };
  const system = await startSystem({ ...settings, config: { ...settings.config, listen } });
  return { ...system, put: secret.put };
}

/** What a TLS client learns of the listener; rejects when no connection comes about. */
async function shakeHands(url: string, options: ConnectionOptions = {}) {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', ca: ca.cert, ...options });
  onTestFinished(() => void socket.destroy());
  await once(socket, 'secureConnect');
  const { serialNumber } = socket.getPeerCertificate();
  return { protocol: socket.getProtocol(), alpn: socket.alpnProtocol, cipher: socket.getCipher().name, serialNumber };
}

function ask(url: string, key: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${key}` };
    const asked = requestOverTls(`${url}/v1/conversations`, { ca: ca.cert, headers, agent: false }, (res) => {
      res.resume().once('end', () => resolve(res.statusCode));
    });
    asked.once('error', reject).end();
  });
}

it('with listen.tls, clients are served over TLS 1.2 and 1.3, by HTTP/1.1 only, and the backend hears https', async () => {
  const { gateway, key, backend } = await startTlsSystem(createCertificate({ issuer: ca }));
  expect(gateway.public).toMatch(/^https:/);
  expect(await ask(gateway.public, key)).toBe(200);
  expect(backend.seen[0]?.headers['x-forwarded-proto']).toBe('https');
  expect((await shakeHands(gateway.public)).protocol).toBe('TLSv1.3');
  const older = await shakeHands(gateway.public, { maxVersion: 'TLSv1.2', ALPNProtocols: ['h2', 'http/1.1'] });
  expect(older).toMatchObject({ protocol: 'TLSv1.2', alpn: 'http/1.1' });
  expect(older.cipher).toMatch(/^ECDHE-.*(GCM|POLY1305)/);
  expect(await readMetric(gateway, 'tollgate_connections_cut_total')).toMatchObject({ 'reason="tls"': 0 });
});

it.each<[string, ConnectionOptions]>([
  ['TLS 1.1', { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' }],
  ['a cipher without forward secrecy', { maxVersion: 'TLSv1.2', ciphers: 'AES128-GCM-SHA256' }],
  ['a cipher without authenticated encryption', { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-AES128-SHA256' }],
  ['HTTP/2 only', { ALPNProtocols: ['h2'] }],
])('%s gets no connection', async (_, options) => {
  const { gateway } = await startTlsSystem(createCertificate({ issuer: ca }));
  await expect(shakeHands(gateway.public, options)).rejects.toThrow();
  await expect.poll(() => readMetric(gateway, 'tollgate_connections_cut_total')).toMatchObject({ 'reason="tls"': 1 });
  await expect.poll(() => readMetric(gateway, 'tollgate_connections')).toEqual({ '': 0 });
});

it.each([
  ['bytes that are not TLS', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['half a handshake', '\x16\x03\x01\x02\x00\x01'],
  ['nothing', ''],
])('a connection with %s ends within limits.headers_timeout_ms', async (_, bytes) => {
  const { gateway } = await startTlsSystem(createCertificate({ issuer: ca }), {
    config: { limits: { headers_timeout_ms: 300 } },
  });
  const socket = connectTcp(Number(new URL(gateway.public).port), '127.0.0.1');
  socket.on('error', () => {}).resume();
  socket.write(bytes, 'latin1');
  await once(socket, 'close');
  await expect.poll(() => readMetric(gateway, 'tollgate_connections_cut_total')).toMatchObject({ 'reason="tls"': 1 });
  await expect.poll(() => readMetric(gateway, 'tollgate_connections')).toEqual({ '': 0 });
});

it('at the limit of connections, a handshake that does not go on gives way, and clients over TLS are served', async () => {
  const { gateway, key } = await startTlsSystem(createCertificate({ issuer: ca }), {
    config: { limits: { connections: 2 } },
  });
  const port = Number(new URL(gateway.public).port);
  const stuck = [connectTcp(port, '127.0.0.1'), connectTcp(port, '127.0.0.1')];
  for (const socket of stuck) await once(socket.on('error', () => {}).resume(), 'connect');
  const closed = stuck.map((socket) => once(socket, 'close'));
  await new Promise((resolve) => setTimeout(resolve, 1100));
  expect(await ask(gateway.public, key)).toBe(200);
  await Promise.race(closed);
  const cut = await readMetric(gateway, 'tollgate_connections_cut_total');
  expect(cut).toMatchObject({ 'reason="displaced"': 1, 'reason="surplus"': 0 });
});

it('a certificate that is swapped as Kubernetes does is used for new connections; one that cannot be is not', async () => {
  const { gateway, key, put } = await startTlsSystem(createCertificate({ issuer: ca }));
  const first = await shakeHands(gateway.public);
  const expiry = () => readMetric(gateway, 'tollgate_certificate_expiry_timestamp_seconds');
  const reloads = () => readMetric(gateway, 'tollgate_certificate_reloads_total');

  const notAfter = new Date(Math.floor(Date.now() / 1000) * 1000 + 3_600_000);
  await put(createCertificate({ issuer: ca, notAfter }));
  await expect.poll(reloads).toEqual({ 'result="used"': 1 });
  const second = await shakeHands(gateway.public);
  expect(second.serialNumber).not.toBe(first.serialNumber);
  expect(await expiry()).toEqual({ '': notAfter.getTime() / 1000 });

  const other = createCertificate({ issuer: ca });
  await put({ ...other, key: ca.key });
  await expect.poll(reloads).toEqual({ 'result="used"': 1, 'result="refused"': 1 });
  expect((await shakeHands(gateway.public)).serialNumber).toBe(second.serialNumber);
  expect(await ask(gateway.public, key)).toBe(200);
  const [said] = gateway.logs.filter(({ msg }) => String(msg).includes('cannot be used'));
  expect(said).toMatchObject({ level: 'error', fault: expect.stringContaining('is not the key of') });
  expect(JSON.stringify(gateway.logs)).not.toContain(ca.key.split('\n')[1]);

  await put(other);
  await expect.poll(reloads).toEqual({ 'result="used"': 2, 'result="refused"': 1 });
  expect((await shakeHands(gateway.public)).serialNumber).not.toBe(second.serialNumber);
});

it('an expired certificate is used, and the log says that clients refuse it', async () => {
  const expired = createCertificate({ issuer: ca, notAfter: new Date(Date.now() - 1000) });
  const { gateway } = await startTlsSystem(expired);
  await shakeHands(gateway.public, { rejectUnauthorized: false });
  const [said] = gateway.logs.filter(({ msg }) => String(msg).includes('has expired'));
  expect(said).toMatchObject({ level: 'warn' });
});

it('every limit on requests and clients holds over TLS too', async () => {
  const { gateway, key } = await startTlsSystem(createCertificate({ issuer: ca }), {
    config: { limits: { headers_timeout_ms: 500, request_timeout_ms: 500, response_stall_timeout_ms: 500 } },
    answer: (_req, res) => void res.end(Buffer.alloc(32 * 1024 * 1024)),
  });
  const open = async () => {
    const socket = connect({ port: Number(new URL(gateway.public).port), host: '127.0.0.1', ca: ca.cert });
    onTestFinished(() => void socket.destroy());
    await once(
      socket.on('error', () => {}),
      'secureConnect',
    );
    return socket;
  };
  const slow = await open();
  slow.write('GET /v1/conv');
  const [answer] = await once(slow, 'data');
  expect(String(answer)).toMatch(/^HTTP\/1\.1 408 /);
  const silent = await open();
  await once(silent.resume(), 'close');
  const reader = await open();
  reader.pause();
  reader.write(`GET /v1/conversations HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`);
  await expect
    .poll(() => readMetric(gateway, 'tollgate_connections_cut_total'))
    .toMatchObject({ 'reason="slow_reader"': 1, 'reason="silent"': 1 });
});

it('keys of the certificate are in no log line and no response of the admin API', async () => {
  const certificate = createCertificate({ issuer: ca });
  const { gateway } = await startTlsSystem(certificate);
  const secret = certificate.key.split('\n')[1] ?? '';
  expect(secret.length).toBeGreaterThan(20);
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  const config = await (await fetch(`${gateway.admin}/admin/v1/config`, { headers })).text();
  expect(config).toContain('tls.key');
  for (const text of [config, JSON.stringify(gateway.logs)]) expect(text).not.toContain(secret);
});

it('with TLS on both sides, a client that reads slowly gets every byte, by length and in chunks, and so does the next', async () => {
  const contents = [randomBytes(4_000_000), randomBytes(3_000_000)];
  const { cert, key: privateKey } = createCertificate({ issuer: ca });
  const server = createServer({ cert, key: privateKey }, (req, res) => {
    const content = contents[Number(req.url?.slice(-1))] ?? '';
    if (req.url?.includes('length')) res.setHeader('Content-Length', content.length);
    res.write(content);
    res.end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close().closeAllConnections());
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-tls-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'ca.crt'), ca.cert);
  const urls = [`https://localhost:${(server.address() as AddressInfo).port}`];
  const upstream = { urls, max_connections: 2, tls: { ca_file: join(folder, 'ca.crt') } };
  const { gateway, key } = await startTlsSystem(createCertificate({ issuer: ca }), { config: { upstream } });
  const download = async (path: string) => {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    const headers = { authorization: `Bearer ${key}` };
    requestOverTls(
      `${gateway.public}/v1/conversations/${path}`,
      { ca: ca.cert, headers, agent: false },
      async (res) => {
        const pieces: Buffer[] = [];
        for await (const piece of res) if (pieces.push(piece) % 16 === 0) await pause(1);
        resolve(Buffer.concat(pieces));
      },
    )
      .once('error', reject)
      .end();
    return promise;
  };
  for (const framing of ['length', 'chunked']) {
    // Two after the others: who waits for a connection gets 503 after two seconds.
    for (let time = 0; time < 2; time++) {
      const downloads = await Promise.all([0, 1].map((which) => download(`${framing}-${which}`)));
      for (const [i, content] of downloads.entries()) expect(content.equals(contents[i] ?? content)).toBe(true);
    }
  }
});
