import { createHash } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { createApiKey } from '../../src/formats/api-key.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { exchangeRaw } from '../support/raw-http.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';

const STORE_PASSWORD = 'marked-store-password-5b1d';
const UPSTREAM_SECRET = 'marked-upstream-secret-77e0';

const answer: RequestListener = (req, res) => {
  if (req.url?.includes('/reset')) res.destroy();
  else if (req.url?.includes('/nonsense')) res.socket?.end('HTTP/1.1 nonsense\r\n\r\n');
  else if (req.url?.includes('/half')) res.writeHead(200, { 'Content-Length': 10 }).write('half', () => res.destroy());
  else res.writeHead(200).end('{}');
};

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

// One key of the gateway's own making, and one made elsewhere, whose form no redaction can know.
describe.each([
  ['generated', createApiKey()],
  ['made elsewhere', 'marked.key-of/somebody+else_9c41=='],
])('a key that was %s', (_, key) => {
  let redis: RedisServer;
  let backend: Backend;
  let gateway: TestGateway;
  /** What the gateway said to anybody. */
  let said: string[];

  beforeEach(async () => {
    const server = await startRedis();
    redis = server;
    onTestFinished(() => server.stop());
    await redis.command('ACL', 'SETUSER', 'gateway', 'on', `>${STORE_PASSWORD}`, '~*', '&*', '+@all');
    const answering = await startBackend(answer);
    backend = answering;
    onTestFinished(() => answering.close());
    const started = await startTestGateway({
      storeUrl: `redis://gateway:${STORE_PASSWORD}@127.0.0.1:${redis.port}`,
      upstreamUrl: backend.url,
      config: { logging: { level: 'trace' }, overrides: { spent: { requests_per_hour: 1 } } },
    });
    gateway = started;
    onTestFinished(() => started.close());
    said = [];
  });

  /** Makes the key the customer's; records are public, so the tests may write them. */
  async function give(customer: string, fields: Record<string, string>, keyFields: Record<string, string> = {}) {
    const record = Object.entries({ id: 'key_marked', customer, ...keyFields }).flat();
    await redis.command('DEL', `tollgate:key:${sha256(key)}`);
    await redis.command('HSET', `tollgate:key:${sha256(key)}`, ...record);
    await redis.command('SET', 'tollgate:key-id:key_marked', sha256(key));
    await redis.command('HSET', `tollgate:customer:{${customer}}`, ...Object.entries(fields).flat());
  }

  async function send(target: string, fields: readonly string[], method = 'GET', content = '') {
    const head = [`${method} ${target} HTTP/1.1`, 'Host: api.example', ...fields].join('\r\n');
    return exchangeRaw(gateway.public, `${head}\r\n\r\n${content}`);
  }

  const authorization = `Authorization: Bearer ${key}`;

  async function askAdmin(path: string, token: string, body?: string) {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const res = await fetch(gateway.admin + path, { method: body ? 'POST' : 'GET', headers, ...(body && { body }) });
    said.push(JSON.stringify([...res.headers]), await res.text());
    return res.status;
  }

  /** Everything that can be read anywhere must be free of the secrets. */
  async function expectKeptSecret(): Promise<void> {
    said.push(
      await (await fetch(`${gateway.ops}/metrics`)).text(),
      await (await fetch(`${gateway.ops}/readyz`)).text(),
    );
    await askAdmin('/status', ADMIN_TOKEN);
    await gateway.close();
    said.push(...gateway.logs.map((line) => JSON.stringify(line)));
    expect(gateway.logs.length).toBeGreaterThan(2);
    // The last one is the key without its end, as a cut text would have it.
    const shapes = [key, encodeURIComponent(key), sha256(key), key.slice(0, -8)];
    const secrets = [...shapes, ADMIN_TOKEN, STORE_PASSWORD];
    expect(said.filter((text) => secrets.some((secret) => text.includes(secret)))).toEqual([]);
  }

  it('reaches the backend in no header, whatever the response', async () => {
    await give('acme', { plan: 'starter' });
    const targets = ['/v1/conversations', '/v1/conversations/x', '/v1/conversations/reset', '/v1/conversations/half'];
    for (const target of [...targets, '/v1/conversations/nonsense']) await send(target, [authorization]);
    await send('/v1/conversations', [authorization.replace('Authorization', 'AUTHORIZATION')], 'HEAD');
    await send('/v1/conversations', [authorization, `Authorization_: x`, `Proxy-Authorization: Bearer ${key}`]);
    // One more than was asked: what the backend reset is asked once more.
    expect(backend.seen).toHaveLength(8);
    expect(JSON.stringify(backend.seen)).not.toContain(key);
    expect(JSON.stringify(backend.seen)).not.toContain(sha256(key));
    await expectKeptSecret();
  });

  it('is in no output about a request that passes or is refused', async () => {
    await give('acme', { plan: 'starter' });
    const answers = [
      await send('/v1/conversations', [authorization]),
      await send(`/v1/conversations?api_key=${key}`, []),
      await send(`/v1/conversations?api_key=${key}`, [authorization]),
      await send(`/v1/conversations/${encodeURIComponent(key)}`, []),
      await send(`/v1/${key}`, [authorization]),
      await send(`/${key}/v1/conversations`, [authorization]),
      await send(`/v2/${key}`, [authorization]),
      await send(`/v1/conversations/${key}%ff`, [authorization]),
      await send(`/v1/conversations/%2f${key}`, [authorization]),
      await send('/v1/conversations', [authorization, authorization]),
      await send('/v1/conversations', [`${authorization} ${key}`]),
      await send('/v1/conversations', [`Authorization: Basic ${key}`]),
      await send('/v1/conversations', [`Authorization: ${key}`]),
      await send('/v1/conversations', [`Authorization: Bearer x${key}`]),
      await send('/v1/conversations', [authorization, `User-Agent: ${key}`, `Referer: /?${key}`, `Cookie: ${key}`]),
      await send('/v1/conversations', [authorization, `X-Request-Id: ${key}`]),
      await send('/v1/conversations', [authorization, `X-Request-Id: request-${key}`]),
      await send('/v1/conversations', [authorization, `X-Forwarded-For: ${key}`]),
      await send('/v1/conversations', [authorization], key.replaceAll(/[^A-Za-z]/g, '').toUpperCase()),
      await send('/v1/conversations', [authorization], 'DELETE'),
      await send('/v1/conversations', [authorization, `Content-Length: ${key.length}`], 'POST', key),
      await send('/v1/conversations', [authorization, `Host: ${key}`]),
      await send(`http://${key}@api.example/v1/conversations`, [authorization]),
      await send('/v1/conversations', [authorization, `X: ${'x'.repeat(20_000)}`]),
      await send(`/v1/conversations?${key}${'x'.repeat(9000)}`, [authorization]),
      await exchangeRaw(gateway.public, `${key}\r\n\r\n`),
      await exchangeRaw(gateway.public, `GET /?${key} HTTP/9.9\r\n${authorization}\r\n\r\n`),
    ];
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 400, 401, 404, 405, 414, 431]));
    said.push(...answers.map((each) => JSON.stringify(each)));
    await expectKeptSecret();
  });

  it.each([
    ['suspended', 403, { plan: 'starter', suspended: '1' }, {}],
    ['without a plan that exists', 403, { plan: 'gone' }, {}],
    ['over its quota', 429, { plan: 'starter', requests_per_hour: '1' }, {}],
    ['with a revoked key', 401, { plan: 'starter' }, { revoked_at: '2020-01-01T00:00:00Z' }],
    ['with an expired key', 401, { plan: 'starter' }, { expires_at: '2020-01-01T00:00:00Z' }],
  ])('is in no output about a customer %s', async (_state, status, fields, keyFields) => {
    await give('acme', fields, keyFields);
    await send('/v1/conversations', [authorization]);
    const refused = await send('/v1/conversations', [authorization]);
    expect(refused.status).toBe(status);
    said.push(JSON.stringify(refused));
    await expectKeptSecret();
  });

  it('is in no output when the backend or the store is unavailable', async () => {
    await give('acme', { plan: 'starter' });
    await backend.close();
    const away = await send(`/v1/conversations/x?${key}`, [authorization]);
    expect(away.status).toBe(503);
    await redis.command('SET', `tollgate:key:${sha256(key)}`, 'not a hash');
    const unreadable = await send('/v1/conversations', [authorization]);
    expect(unreadable.status).toBe(503);
    await redis.kill();
    const lost = await send('/v1/conversations', [authorization]);
    expect(lost.status).toBe(503);
    said.push(JSON.stringify([away, unreadable, lost]));
    await askAdmin('/admin/v1/customers/acme', ADMIN_TOKEN);
    // Back, but without the user: the password is refused.
    await redis.restart();
    await expect
      .poll(async () => {
        const res = await fetch(`${gateway.admin}/status`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
        const text = await res.text();
        said.push(text);
        return text;
      })
      .toContain('WRONGPASS');
    await expectKeptSecret();
    backend = await startBackend(answer);
  });

  it('and the admin token are in nothing that the admin API says', async () => {
    await give('acme', { plan: 'starter' });
    const statuses = [
      await askAdmin('/admin/v1/customers/acme', ADMIN_TOKEN),
      await askAdmin('/admin/v1/keys/key_marked', ADMIN_TOKEN),
      await askAdmin(`/admin/v1/keys/${encodeURIComponent(key)}`, ADMIN_TOKEN),
      await askAdmin(`/admin/v1/keys/${sha256(key)}`, ADMIN_TOKEN),
      await askAdmin(`/admin/v1/customers/${encodeURIComponent(key)}/usage`, ADMIN_TOKEN),
      await askAdmin(`/admin/v1/customers/${key}%ff`, ADMIN_TOKEN),
      await askAdmin(`/admin/v1/customers?${key}=${ADMIN_TOKEN}`, ADMIN_TOKEN),
      await askAdmin('/admin/v1/customers', ADMIN_TOKEN, `{"id":"-${key}","plan":"starter","key":"${key}"}`),
      await askAdmin('/admin/v1/customers', ADMIN_TOKEN, `{"id":"${key}`),
      await askAdmin('/admin/v1/customers/acme/keys', ADMIN_TOKEN, `{"value":"${key}"}`),
      await askAdmin('/admin/v1/customers/acme/keys', ADMIN_TOKEN, `{"expires_at":"${key}"}`),
      await askAdmin('/status', key),
      await askAdmin(`/status?token=${ADMIN_TOKEN}`, `${ADMIN_TOKEN}x`),
      await askAdmin('/admin/v1/customers/acme/keys', `x${ADMIN_TOKEN}`, `{"value":"${key}"}`),
    ];
    expect(statuses.filter((status) => status === 200)).toHaveLength(2);
    expect(new Set(statuses)).toEqual(new Set([200, 400, 401, 404, 409, 422]));
    // The public side knows nothing of the admin token, and the ops side takes no credentials.
    await send('/v1/conversations', [`Authorization: Bearer ${ADMIN_TOKEN}`]);
    const ops = await fetch(`${gateway.ops}/${ADMIN_TOKEN}?${encodeURIComponent(key)}`, {
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    });
    said.push(await ops.text());
    await expectKeptSecret();
  });
});

it('a new key is shown only in the response that created it', async () => {
  const redis = await startRedis();
  const backend = await startBackend();
  const gateway = await startTestGateway({
    storeUrl: redis.url,
    upstreamUrl: backend.url,
    config: { upstream: { credentials: 'replace', authorization: `Basic ${UPSTREAM_SECRET}` } },
  });
  try {
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' };
    const post = async (path: string, body: unknown) => {
      const res = await fetch(gateway.admin + path, { method: 'POST', headers, body: JSON.stringify(body) });
      return (await res.json()) as Record<string, string>;
    };
    await post('/admin/v1/customers', { id: 'acme', plan: 'starter' });
    const { key = '', id } = await post('/admin/v1/customers/acme/keys', { name: 'new' });
    const record = await (await fetch(`${gateway.admin}/admin/v1/keys/${id}`, { headers })).text();
    expect(record).toContain('"name":"new"');
    expect(record).not.toContain(key);
    expect(record).not.toContain(sha256(key));

    const answered = await fetch(`${gateway.public}/v1/conversations`, { headers: { authorization: `Bearer ${key}` } });
    expect(answered.status).toBe(200);
    expect(backend.seen[0]?.headers.authorization).toBe(`Basic ${UPSTREAM_SECRET}`);
    expect(JSON.stringify([...answered.headers]) + (await answered.text())).not.toContain(UPSTREAM_SECRET);
    const names = (await redis.command('KEYS', '*')) as string[];
    expect(names).toContain(`tollgate:key:${sha256(key)}`);
    const stored = await Promise.all(names.map((name) => redis.command('DUMP', name)));
    expect(names.join() + stored.join()).not.toContain(key);
    const rest = JSON.stringify(gateway.logs) + (await (await fetch(`${gateway.ops}/metrics`)).text());
    for (const secret of [key, sha256(key), UPSTREAM_SECRET, ADMIN_TOKEN]) expect(rest).not.toContain(secret);
  } finally {
    await gateway.close();
    await backend.close();
    await redis.stop();
  }
});
