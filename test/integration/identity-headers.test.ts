import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { bearer, callAdmin } from '../support/admin.ts';
import type { SeenRequest } from '../support/backend.ts';
import { exchangeRaw } from '../support/raw-http.ts';
import { startSystem, type TestSystem } from '../support/system.ts';

const HOST = 'api.example';

/** Sends fields as they are, after Host and the key; resolves to the answer and what the backend got of it. */
async function send({ gateway, backend, key }: TestSystem, fields: readonly string[], target = '/v1/conversations') {
  const head = [`GET ${target} HTTP/1.1`, `Host: ${HOST}`, `Authorization: Bearer ${key}`, ...fields];
  const before = backend.seen.length;
  const answer = await exchangeRaw(gateway.public, `${head.join('\r\n')}\r\n\r\n`);
  expect(backend.seen, answer.body).toHaveLength(before + 1);
  return { answer, seen: backend.seen[before] as SeenRequest };
}

/** All values of a field, whatever the case of its name. */
function values({ rawHeaders }: SeenRequest, name: string): string[] {
  return rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name.toLowerCase());
}

function names({ rawHeaders }: SeenRequest): string[] {
  return rawHeaders.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase().replaceAll('_', '-'));
}

describe('the customer', () => {
  it('is sent to the backend: customer, plan, key, request id, and the forwarding headers', async () => {
    const system = await startSystem();
    const { body: created } = await callAdmin(system.gateway, '/admin/v1/customers/acme/keys', { body: {} });
    const { answer, seen } = await send({ ...system, key: created.key }, ['Via: 1.0 front']);
    expect(answer.status).toBe(200);
    expect(values(seen, 'X-Tollgate-Customer')).toEqual(['acme']);
    expect(values(seen, 'X-Tollgate-Plan')).toEqual(['starter']);
    expect(values(seen, 'X-Tollgate-Key-Id')).toEqual([created.id]);
    expect(values(seen, 'X-Request-Id')).toEqual([answer.headers['x-request-id']]);
    expect(values(seen, 'X-Forwarded-For')).toEqual(['127.0.0.1']);
    expect(values(seen, 'X-Forwarded-Proto')).toEqual(['http']);
    expect(values(seen, 'X-Forwarded-Host')).toEqual([HOST]);
    expect(values(seen, 'Via')).toEqual(['1.0 front', '1.1 tollgate']);
  });

  it.each([
    'X-Tollgate-Customer: spoofed',
    'x-tollgate-customer: spoofed',
    'X_Tollgate_Customer: spoofed',
    'X-Tollgate_Plan: spoofed',
    'x_TOLLGATE-key_ID: spoofed',
    'X-Tollgate-Assertion: spoofed',
    'X-Tollgate-Anything: spoofed',
    'X-Forwarded-For: spoofed',
    'X_Forwarded_For: spoofed',
    'X-Forwarded-Proto: spoofed',
    'X-Forwarded-Host: spoofed',
    'X-Forwarded-Port: spoofed',
    'X-Forwarded-Prefix: spoofed',
    'X-Request-Id: spoofed spoofed',
    'Forwarded: for=spoofed',
    'X-Real-IP: spoofed',
    'X-Original-URL: /spoofed',
    'X-Rewrite-URL: /spoofed',
    'X-HTTP-Method-Override: spoofed',
    'X-HTTP-Method: spoofed',
    'X-Method-Override: spoofed',
    'Proxy-Authorization: spoofed',
    'TE: spoofed',
    'Upgrade: spoofed',
  ])('does not come from the client: %s', async (field) => {
    const system = await startSystem();
    const { answer, seen } = await send(system, [field, field]);
    expect(answer.status).toBe(200);
    expect(seen.rawHeaders.join('\n')).not.toContain('spoofed');
    expect(values(seen, 'X-Tollgate-Customer')).toEqual(['acme']);
    expect(values(seen, 'X-Forwarded-For')).toEqual(['127.0.0.1']);
    expect(values(seen, 'X-Request-Id')).toEqual([answer.headers['x-request-id']]);
  });

  it('cannot be removed by the Connection header', async () => {
    const own = [
      'X-Tollgate-Customer',
      'X-Tollgate-Plan',
      'X-Tollgate-Key-Id',
      'X-Request-Id',
      'X-Forwarded-For',
      'X-Forwarded-Proto',
      'X-Forwarded-Host',
      'Via',
    ];
    const { seen } = await send(await startSystem(), [`Connection: ${own.join(', ')}, Keep-Alive`, 'Via: 1.0 front']);
    for (const name of own) expect(values(seen, name), name).toHaveLength(1);
    expect(values(seen, 'X-Tollgate-Customer')).toEqual(['acme']);
    expect(values(seen, 'Via')).toEqual(['1.1 tollgate']);
  });

  it('is not sent to the backend when identity.headers is off, whatever the client claims', async () => {
    const system = await startSystem({ config: { identity: { headers: false } } });
    const { seen } = await send(system, ['X-Tollgate-Customer: spoofed', 'X_Tollgate_Plan: spoofed']);
    expect(names(seen).filter((name) => name.startsWith('x-tollgate-'))).toEqual([]);
    expect(values(seen, 'X-Forwarded-For')).toEqual(['127.0.0.1']);
  });
});

describe("the backend's Authorization", () => {
  it('is empty by default', async () => {
    const { seen } = await send(await startSystem(), []);
    expect(names(seen)).not.toContain('authorization');
    expect(names(seen)).not.toContain('proxy-authorization');
  });

  it("is the client's own with forward", async () => {
    const system = await startSystem({ config: { upstream: { credentials: 'forward' } } });
    const { seen } = await send(system, []);
    expect(values(seen, 'Authorization')).toEqual([`Bearer ${system.key}`]);
  });

  it('is the configured one, and that alone, with replace', async () => {
    const upstream = { credentials: 'replace', authorization: 'Basic aW5uZXI6c2VjcmV0' };
    const system = await startSystem({ config: { upstream } });
    // Naming the field in Connection takes away the caller's own at most.
    for (const fields of [[], ['Connection: Authorization']]) {
      const { seen } = await send(system, fields);
      expect(values(seen, 'Authorization')).toEqual([upstream.authorization]);
      expect(seen.rawHeaders.join('\n')).not.toContain(system.key);
    }
  });
});

describe("the backend's Host", () => {
  it('is its own authority by default', async () => {
    const system = await startSystem();
    const { seen } = await send(system, []);
    expect(values(seen, 'Host')).toEqual([new URL(system.backend.url).host]);
  });

  it("is the client's with preserve_host", async () => {
    const { seen } = await send(await startSystem({ config: { upstream: { preserve_host: true } } }), []);
    expect(values(seen, 'Host')).toEqual([HOST]);
  });
});

describe('the way a request came', () => {
  const CLAIMS = [
    'X-Forwarded-For: 198.51.100.9, 203.0.113.7',
    'X-Forwarded-Proto: https',
    'X-Forwarded-Host: shop.example',
  ];

  it('is extended when it comes from a trusted proxy', async () => {
    const system = await startSystem({
      config: { listen: { trusted_proxies: ['127.0.0.0/8'], trust_forwarded_host: true } },
    });
    const { seen } = await send(system, CLAIMS);
    expect(values(seen, 'X-Forwarded-For')).toEqual(['198.51.100.9, 203.0.113.7, 127.0.0.1']);
    expect(values(seen, 'X-Forwarded-Proto')).toEqual(['https']);
    expect(values(seen, 'X-Forwarded-Host')).toEqual(['shop.example']);
    await expect
      .poll(() => system.gateway.logs)
      .toContainEqual(expect.objectContaining({ msg: 'request', client: '203.0.113.7' }));
  });

  it('is made anew when it comes from anybody else', async () => {
    const system = await startSystem({ config: { listen: { trusted_proxies: ['192.0.2.1'] } } });
    const { seen } = await send(system, CLAIMS);
    expect(values(seen, 'X-Forwarded-For')).toEqual(['127.0.0.1']);
    expect(values(seen, 'X-Forwarded-Proto')).toEqual(['http']);
    expect(values(seen, 'X-Forwarded-Host')).toEqual([HOST]);
    await expect
      .poll(() => system.gateway.logs)
      .toContainEqual(expect.objectContaining({ msg: 'request', client: '127.0.0.1' }));
  });
});

describe('the host that a client names', () => {
  async function startBystander() {
    let connections = 0;
    const server = createServer((_req, res) => res.end('the wrong one'));
    server.on('connection', () => {
      connections++;
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    return {
      authority: `127.0.0.1:${(server.address() as AddressInfo).port}`,
      connections: () => connections,
    };
  }

  it.each([true, false])(
    'in an absolute target is never where the request goes (preserve_host: %s)',
    async (preserve) => {
      const bystander = await startBystander();
      const system = await startSystem({ config: { upstream: { preserve_host: preserve } } });
      const target = `http://${bystander.authority}/v1/conversations/x?a=%2F`;
      const { answer, seen } = await send(system, [], target);
      expect(answer.status).toBe(200);
      expect(seen.url).toBe('/api/v1/conversations/x?a=%2F');
      const expected = preserve ? bystander.authority : new URL(system.backend.url).host;
      expect(values(seen, 'Host')).toEqual([expected]);
      expect(values(seen, 'X-Forwarded-Host')).toEqual([bystander.authority]);
      expect(bystander.connections()).toBe(0);
    },
  );

  it.each([
    ['//AUTHORITY/v1/conversations', 404],
    ['/v1/conversations//AUTHORITY', 404],
    ['AUTHORITY', 400],
    ['http://user@AUTHORITY/v1/conversations', 400],
    ['@AUTHORITY/v1/conversations', 400],
    ['ftp://AUTHORITY/v1/conversations', 400],
    ['http:/AUTHORITY/v1/conversations', 400],
    ['http://AUTHORITY\\@other/v1/conversations', 400],
  ])('as %s is refused, without a connection to any host', async (target, status) => {
    const bystander = await startBystander();
    const { gateway, backend, key } = await startSystem();
    const field = `Authorization: ${bearer(key).authorization}`;
    const line = `GET ${target.replace('AUTHORITY', bystander.authority)} HTTP/1.1`;
    const answer = await exchangeRaw(gateway.public, `${line}\r\nHost: ${HOST}\r\n${field}\r\n\r\n`);
    expect(answer.status).toBe(status);
    expect(backend.seen).toEqual([]);
    expect(bystander.connections()).toBe(0);
  });
});
