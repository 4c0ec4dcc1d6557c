/** The configuration of docs/recipes/mcp.md before a server that speaks Streamable HTTP, new and old. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { callAdmin, createCustomerWithKey } from '../../support/admin.ts';
import { startSystem, type TestSystem } from '../../support/system.ts';
import { blockOf, configOf } from './support.ts';

const ENTRY = JSON.parse(blockOf('mcp', 'json')).mcpServers.conversations;
const ENDPOINT = new URL(ENTRY.url).pathname;
const EVENTS = 'text/event-stream';

interface Message {
  readonly method: string;
  readonly id?: number;
}

const eventOf = (method: string, id?: number) =>
  `${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify({ jsonrpc: '2.0', method })}\n\n`;

/** An MCP server with one stream at a time. The sessions belong to the customer that began them. */
function createMcpServer() {
  const sessions = new Map<string, unknown>();
  const server = {
    /** The response that streams, or streamed last. */
    stream: undefined as ServerResponse | undefined,
    isStreamClosed: false,
    lastEventId: undefined as unknown,
    answer: ((req, res) => {
      respond(req, res).catch(() => res.destroy());
    }) as RequestListener,
  };

  async function respond(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { headers } = req;
    const customer = headers['x-tollgate-customer'];
    const isSessionless = headers['mcp-protocol-version'] === '2026-07-28';
    const message = req.method === 'POST' ? ((await json(req)) as Message) : undefined;
    if (message?.method === 'initialize') {
      const session = randomUUID();
      sessions.set(session, customer);
      res.writeHead(200, { 'Content-Type': 'application/json', 'Mcp-Session-Id': session });
      res.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result: { protocolVersion: '2025-11-25' } }));
      return;
    }
    const session = String(headers['mcp-session-id']);
    if (!isSessionless && sessions.get(session) !== customer) return void res.writeHead(404).end();
    if (req.method === 'DELETE') {
      sessions.delete(session);
      res.writeHead(204).end();
    } else if (message !== undefined && message.id === undefined) {
      res.writeHead(202).end();
    } else if (message?.method === 'tools/list') {
      res.writeHead(200, { 'Content-Type': 'application/json' });
      res.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result: { tools: [] } }));
    } else {
      server.lastEventId = headers['last-event-id'];
      server.isStreamClosed = false;
      res.on('close', () => {
        server.isStreamClosed = true;
      });
      res.writeHead(200, { 'Content-Type': EVENTS, 'X-Accel-Buffering': 'no' }).flushHeaders();
      server.stream = res;
    }
  }

  return server;
}

async function start(upstream: Record<string, unknown> = {}) {
  const mcp = createMcpServer();
  const config = configOf('mcp', 'upstream:');
  const settings = { ...config, upstream: { ...config.upstream, ...upstream }, usage_path: '/usage' };
  const system = await startSystem({ answer: mcp.answer, config: settings as unknown as typeof config });
  return { ...system, mcp };
}

/** Sends requests as a client with the entry of the page does. */
function clientOf({ gateway }: Pick<TestSystem, 'gateway'>, key: string, headers: Record<string, string> = {}) {
  const own = JSON.parse(JSON.stringify(ENTRY.headers).replace(`\${TOLLGATE_API_KEY}`, key));
  const send = (method: string, more: Record<string, string> = {}, body?: string) =>
    fetch(gateway.public + ENDPOINT, {
      method,
      headers: { Accept: `application/json, ${EVENTS}`, ...own, ...headers, ...more },
      ...(body !== undefined && { body }),
    });
  return {
    get: (more?: Record<string, string>) => send('GET', more),
    end: () => send('DELETE'),
    post: (message: Message) =>
      send('POST', { 'Content-Type': 'application/json' }, JSON.stringify({ jsonrpc: '2.0', ...message })),
  };
}

/** Reads a stream until it has brought a text. */
async function readUntil(stream: AsyncIterator<Uint8Array>, text: string): Promise<string> {
  let read = '';
  while (!read.includes(text)) {
    const { value, done } = await stream.next();
    if (done) throw new Error(`the stream ended before ${text}: ${read}`);
    read += Buffer.from(value).toString();
  }
  return read;
}

function chunksOf({ body }: Response): AsyncIterator<Uint8Array> {
  if (body === null) throw new Error('the response has no body');
  return body[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
}

const usedUnits = async ({ gateway }: Pick<TestSystem, 'gateway'>) =>
  (await callAdmin(gateway, '/admin/v1/customers/acme/usage')).body.used;

it('a client of 2026-07-28 lists and calls tools: events pass at once, and closing the stream cancels', async () => {
  const { gateway, backend, key, mcp } = await start();
  const client = clientOf({ gateway }, key, { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call' });
  const list = await client.post({ method: 'tools/list', id: 1 });
  expect(await list.json()).toMatchObject({ id: 1, result: { tools: [] } });

  // Headers, and then each event, arrive while the server has sent nothing more.
  const call = await client.post({ method: 'tools/call', id: 2 });
  expect([call.status, call.headers.get('content-type')]).toEqual([200, EVENTS]);
  expect(call.headers.get('x-accel-buffering')).toBe('no');
  const chunks = chunksOf(call);
  for (const method of ['notifications/progress', 'notifications/message']) {
    mcp.stream?.write(eventOf(method));
    await readUntil(chunks, method);
  }
  expect(mcp.isStreamClosed).toBe(false);
  await chunks.return?.();
  await expect.poll(() => mcp.isStreamClosed).toBe(true);

  expect(backend.seen[1]?.headers).toMatchObject({
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'x-tollgate-customer': 'acme',
  });
  expect(JSON.stringify(backend.seen)).not.toContain(key);
  expect(await usedUnits({ gateway })).toBe(2);
});

it('a client of 2025-11-25 has a session of its own, a stream that it resumes, and an end: one unit a request', async () => {
  const { gateway, key, mcp } = await start();
  const begun = await clientOf({ gateway }, key).post({ method: 'initialize', id: 1 });
  const session = { 'Mcp-Session-Id': begun.headers.get('mcp-session-id') ?? '' };
  const client = clientOf({ gateway }, key, { ...session, 'MCP-Protocol-Version': '2025-11-25' });
  expect((await client.post({ method: 'notifications/initialized' })).status).toBe(202);

  const stream = chunksOf(await client.get());
  mcp.stream?.write(eventOf('notifications/tools/list_changed', 7));
  await readUntil(stream, 'id: 7');
  const list = await client.post({ method: 'tools/list', id: 2 });
  expect(list.status).toBe(200);
  mcp.stream?.end();
  expect((await stream.next()).done).toBe(true);
  const resumed = await client.get({ 'Last-Event-ID': '7' });
  expect([resumed.status, mcp.lastEventId]).toEqual([200, '7']);
  await resumed.body?.cancel();

  const other = await createCustomerWithKey(gateway, { id: 'other', plan: 'starter' });
  expect((await clientOf({ gateway }, other, session).post({ method: 'tools/list', id: 3 })).status).toBe(404);
  expect((await client.end()).status).toBe(204);
  expect((await client.post({ method: 'tools/list', id: 4 })).status).toBe(404);
  expect(await usedUnits({ gateway })).toBe(7);
});

it('a user signs in at the server: both credentials have a header, and the metadata needs none', async () => {
  const challenge = 'Bearer resource_metadata="https://api.example.com/.well-known/oauth-protected-resource/mcp"';
  const config = { ...configOf('mcp', 'upstream:'), ...configOf('mcp', 'key_headers'), usage_path: '/usage' };
  const { gateway, backend, key } = await startSystem({
    config: config as unknown as Record<string, Record<string, unknown>>,
    answer: ({ url, headers }, res) => {
      const isAllowed = url !== ENDPOINT || headers.authorization === 'Bearer token-of-a-user';
      res.writeHead(isAllowed ? 200 : 401, isAllowed ? {} : { 'WWW-Authenticate': challenge }).end('{}');
    },
  });
  const send = async (path: string, headers: Record<string, string> = {}) => {
    const { status, headers: sent } = await fetch(gateway.public + path, { headers });
    return [status, sent.get('www-authenticate')];
  };
  const ofKey = { 'X-API-Key': key };
  expect(await send(ENDPOINT)).toEqual([401, expect.stringMatching(/^ApiKey /)]);
  expect(await send(ENDPOINT, ofKey)).toEqual([401, challenge]);
  expect(await send(`/.well-known/oauth-protected-resource${ENDPOINT}`)).toEqual([200, null]);
  expect(await send(ENDPOINT, { ...ofKey, Authorization: 'Bearer token-of-a-user' })).toEqual([200, null]);
  expect(backend.seen).toHaveLength(3);
  expect(JSON.stringify(backend.seen)).not.toContain(key);
});

it('comments keep a stream open for longer than idle_timeout_ms', async () => {
  const idleMs = 3000;
  const { gateway, key, mcp } = await start({ idle_timeout_ms: idleMs });
  const response = await clientOf({ gateway }, key, { 'MCP-Protocol-Version': '2026-07-28' }).post({
    method: 'subscriptions/listen',
    id: 1,
  });
  const chunks = chunksOf(response);
  const begunMs = performance.now();
  const comments = setInterval(() => mcp.stream?.write(':\n\n'), 100);
  try {
    while (performance.now() - begunMs < 1.5 * idleMs) await readUntil(chunks, ':');
  } finally {
    clearInterval(comments);
  }
  mcp.stream?.write(eventOf('notifications/tools/list_changed'));
  await readUntil(chunks, 'list_changed');
});

it('a stream without them is reset, and the log says why', async () => {
  const { gateway, key } = await start({ idle_timeout_ms: 200 });
  const response = await clientOf({ gateway }, key, { 'MCP-Protocol-Version': '2026-07-28' }).post({
    method: 'subscriptions/listen',
    id: 1,
  });
  await expect(readUntil(chunksOf(response), 'anything')).rejects.toThrow('terminated');
  await expect
    .poll(() => gateway.logs.findLast(({ msg }) => msg === 'request'))
    .toMatchObject({ status: 200, failure: 'idle_timeout' });
});
