import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from 'jose';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { bearer, callAdmin } from '../../support/admin.ts';
import { exchangeRaw } from '../../support/raw-http.ts';
import { startSystem, type TestSystem } from '../../support/system.ts';
import { createPemPair } from './support.ts';

const ROOT = resolve(import.meta.dirname, '../../..');

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tollgate-identity-'));
  onTestFinished(() => rm(folder, { recursive: true }));
});

/** A gateway that signs, and its first assertion at the backend. */
async function startSigning(assertion: Record<string, unknown> = {}, identity: Record<string, unknown> = {}) {
  const file = join(folder, 'assertion.pem');
  await writeFile(file, createPemPair().privatePem);
  return startSystem({ config: { identity: { ...identity, assertion: { signing_key_file: file, ...assertion } } } });
}

async function read({ gateway, key }: TestSystem): Promise<void> {
  const answer = await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) });
  expect(answer.status).toBe(200);
}

function assertionAt({ backend }: TestSystem, at = -1): string {
  return String(backend.seen.at(at)?.headers['x-tollgate-assertion']);
}

async function publishedBy({ gateway }: TestSystem): Promise<JSONWebKeySet> {
  return (await (await fetch(`${gateway.ops}/.well-known/jwks.json`)).json()) as JSONWebKeySet;
}

it('the backend gets an assertion that the published keys verify: customer, plan, key and audience', async () => {
  const system = await startSigning({ issuer: 'https://gw.example', ttl_seconds: 30 });
  const { body } = await callAdmin(system.gateway, '/admin/v1/customers/acme/keys', { body: {} });
  await read({ ...system, key: body.key });
  const { payload } = await jwtVerify(assertionAt(system), createLocalJWKSet(await publishedBy(system)), {
    algorithms: ['EdDSA'],
    issuer: 'https://gw.example',
    audience: system.backend.url,
  });
  expect(payload).toMatchObject({ sub: 'acme', plan: 'starter', key_id: body.id });
  expect(Number(payload.exp) - Number(payload.iat)).toBe(30);
  expect(assertionAt(system)).not.toContain(body.key);
});

it('the audience is the configured one, if there is one', async () => {
  const system = await startSigning({ audience: 'https://conversations.internal' });
  await read(system);
  expect(decodeJwt(assertionAt(system)).aud).toBe('https://conversations.internal');
});

it('one serves further requests, until the plan of the customer changes', async () => {
  const system = await startSigning();
  for (let i = 0; i < 3; i++) await read(system);
  expect(new Set([0, 1, 2].map((at) => assertionAt(system, at))).size).toBe(1);
  await callAdmin(system.gateway, '/admin/v1/customers/acme', { method: 'PATCH', body: { plan: 'business' } });
  await read(system);
  expect(decodeJwt(assertionAt(system))).toMatchObject({ sub: 'acme', plan: 'business' });
});

it('keys are changed without a restart: the next one is published, signs from then on, and is left alone', async () => {
  const system = await startSigning();
  const file = join(folder, 'assertion.pem');
  const [old, next] = [await readFile(file, 'utf8'), createPemPair().privatePem];
  const keyIdOf = async () => {
    await read(system);
    return decodeProtectedHeader(assertionAt(system)).kid;
  };
  const published = async () => (await publishedBy(system)).keys.map(({ kid }) => kid);
  const takeOver = async (content: string) => {
    await writeFile(file, content);
    expect((await system.gateway.reload('signal')).result).toMatch(/^(applied|unchanged)$/);
    return { signs: await keyIdOf(), published: await published() };
  };
  const first = await keyIdOf();
  const both = await takeOver(old + next);
  expect(both).toEqual({ signs: first, published: [first, expect.any(String)] });
  const second = both.published[1];
  expect(await takeOver(next + old)).toEqual({ signs: second, published: [second, first] });
  expect(await takeOver(next)).toEqual({ signs: second, published: [second] });
});

it('it does not depend on the headers, and a client cannot forge it', async () => {
  const system = await startSigning({}, { headers: false });
  const head = ['GET /v1/conversations HTTP/1.1', 'Host: a', `Authorization: Bearer ${system.key}`];
  const spoofed = [
    'X-Tollgate-Assertion: spoofed',
    'x_tollgate_assertion: spoofed',
    'Connection: X-Tollgate-Assertion',
  ];
  await exchangeRaw(system.gateway.public, `${[...head, ...spoofed].join('\r\n')}\r\n\r\n`);
  const [seen] = system.backend.seen;
  expect(seen?.rawHeaders.join('\n')).not.toContain('spoofed');
  expect(seen?.headers).not.toHaveProperty('x-tollgate-customer');
  expect(decodeJwt(assertionAt(system)).sub).toBe('acme');
});

it('without the section nothing is signed, and no key is published', async () => {
  const system = await startSystem();
  await read(system);
  expect(system.backend.seen[0]?.headers).not.toHaveProperty('x-tollgate-assertion');
  expect(await publishedBy(system)).toEqual({ keys: [] });
});

describe('the example of docs/identity.md', () => {
  interface Example {
    customerOf(request: { headers: Record<string, string | undefined> }): Promise<Record<string, unknown>>;
  }

  /** The example, as it is copied, with the addresses put in. */
  async function loadExample(jwksUrl: string, audience: string): Promise<Example> {
    const text = await readFile(join(ROOT, 'docs/identity.md'), 'utf8');
    let code = /^```js\n(.*?)^```$/ms.exec(text)?.[1] ?? '';
    for (const [placeholder, value] of [
      ['http://tollgate.internal:8081/.well-known/jwks.json', jwksUrl],
      ['http://conversations.internal:3000', audience],
    ] as const) {
      expect(code.split(placeholder)).toHaveLength(2);
      code = code.replace(placeholder, value);
    }
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    const file = join(folder, 'caller.mjs');
    await writeFile(file, code);
    return (await import(/* @vite-ignore */ pathToFileURL(file).href)) as Example;
  }

  it('identifies the customer, and refuses requests that bypass the gateway', async () => {
    const system = await startSigning();
    const { gateway, backend } = system;
    const { customerOf } = await loadExample(`${gateway.ops}/.well-known/jwks.json`, backend.url);
    await read(system);
    const assertion = assertionAt(system);
    const caller = { customer: 'acme', plan: 'starter', keyId: decodeJwt(assertion).key_id };
    expect(await customerOf({ headers: { 'x-tollgate-assertion': assertion } })).toEqual(caller);
    await expect(customerOf({ headers: {} })).rejects.toThrow();
    const [head, , signature] = assertion.split('.');
    const claims = Buffer.from(JSON.stringify({ ...decodeJwt(assertion), sub: 'other' })).toString('base64url');
    const forged = `${head}.${claims}.${signature}`;
    await expect(customerOf({ headers: { 'x-tollgate-assertion': forged } })).rejects.toThrow();
  });

  it('refuses what another backend was given', async () => {
    const system = await startSigning();
    const { customerOf } = await loadExample(`${system.gateway.ops}/.well-known/jwks.json`, 'http://other:3000');
    await read(system);
    await expect(customerOf({ headers: { 'x-tollgate-assertion': assertionAt(system) } })).rejects.toThrow('aud');
  });
});
