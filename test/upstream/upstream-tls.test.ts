import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket, TlsOptions } from 'node:tls';
import { expect, it, onTestFinished } from 'vitest';
import { createCustomerWithKey } from '../support/admin.ts';
import { createCertificate } from '../support/certificates.ts';
import { EMBEDDED_STORE, startTestGateway } from '../support/gateway.ts';

const ca = createCertificate({ name: 'a test authority' });
const backendCertificate = createCertificate({ issuer: ca });
const gatewayCertificate = createCertificate({ name: 'the gateway', issuer: ca });

/** The status that a caller gets from a backend with TLS, and whom the backend takes the gateway for. */
async function askThrough(tls: Record<string, string>, backend: TlsOptions = {}, host = 'localhost') {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-upstream-tls-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const files = { ca: ca.cert, crt: gatewayCertificate.cert, key: gatewayCertificate.key };
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
  let peer: string | undefined;
  const options = { cert: backendCertificate.cert, key: backendCertificate.key, ca: ca.cert, ...backend };
  const server = createServer(options, ({ socket }, res) => {
    peer = String((socket as TLSSocket).getPeerCertificate().subject?.CN);
    res.end('{}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const store = await EMBEDDED_STORE.start();
  onTestFinished(() => store.close());
  const named = Object.fromEntries(Object.entries(tls).map(([key, name]) => [key, join(folder, name)]));
  const gateway = await startTestGateway({
    storeUrl: store.url,
    upstreamUrl: `https://${host}:${(server.address() as AddressInfo).port}`,
    config: { upstream: { connect_timeout_ms: 5000, tls: named } },
  });
  onTestFinished(() => gateway.close());
  const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'starter' });
  const headers = { authorization: `Bearer ${key}` };
  return { status: (await fetch(`${gateway.public}/v1/conversations`, { headers })).status, peer };
}

it('a backend whose certificate is signed by upstream.tls.ca_file gets requests', async () => {
  expect(await askThrough({ ca_file: 'ca' })).toEqual({ status: 200, peer: 'undefined' });
});

it('a backend whose certificate is signed by an unknown authority does not', async () => {
  expect(await askThrough({})).toEqual({ status: 503, peer: undefined });
});

it('a backend whose certificate is for another name gets no request', async () => {
  const { cert, key } = createCertificate({ name: 'elsewhere.example', issuer: ca });
  expect(await askThrough({ ca_file: 'ca' }, { cert, key })).toEqual({ status: 503, peer: undefined });
});

it('a backend with a version before TLS 1.2 gets no request', async () => {
  const old: TlsOptions = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' };
  expect(await askThrough({ ca_file: 'ca' }, old)).toEqual({ status: 503, peer: undefined });
});

it('a backend that requests a client certificate gets that of upstream.tls', async () => {
  const strict = { requestCert: true, rejectUnauthorized: true };
  const own = { ca_file: 'ca', cert_file: 'crt', key_file: 'key' };
  expect(await askThrough(own, strict)).toEqual({ status: 200, peer: 'the gateway' });
  expect((await askThrough({ ca_file: 'ca' }, strict)).peer).toBeUndefined();
});
