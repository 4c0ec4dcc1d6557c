/**
 * A Conversations service for trying out the gateway: in memory, without credentials. Everything can be read, and a
 * message can be added to a conversation, if the gateway has a route for it. Paging, error format and caching headers
 * are arbitrary; the gateway relies on none of them.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, isIPv6 } from 'node:net';
import express, { type ErrorRequestHandler, type Express, type Response } from 'express';
import { type Conversation, createConversations } from './conversations.ts';

export type SampleBackend = Awaited<ReturnType<typeof startSampleBackend>>;

const LIST_PATH = '/api/v1/conversations';
const MESSAGES_PATH = /^\/api\/v1\/conversations\/[^/]+\/messages$/;
const DEFAULT_PAGE = 20;
const MAX_PAGE = 100;

/** Starts the server. Port 0 picks any free port. Rejects if it cannot listen on the address. */
export async function startSampleBackend({ host, port }: { host: string; port: number }) {
  const server = createApp(createConversations()).listen(port, host);
  await once(server, 'listening');
  const { address, port: actualPort } = server.address() as AddressInfo;
  return {
    url: new URL(`http://${isIPv6(address) ? `[${address}]` : address}:${actualPort}`),
    /** Aborts requests in progress. */
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Express adds the ETags, and responds to conditional requests and to HEAD. */
function createApp(conversations: readonly Conversation[]): Express {
  const app = express().disable('x-powered-by').set('etag', 'strong');
  app.use((req, res, next) => {
    res.set('Cache-Control', 'private, no-cache');
    // fetch sends "no-cache" with a condition of its caller, for which Express would not respond with 304.
    delete req.headers['cache-control'];
    if (req.method === 'GET' || req.method === 'HEAD') return next();
    if (req.method === 'POST' && MESSAGES_PATH.test(req.path)) return next();
    refuse(res.set('Allow', 'GET, HEAD'), 405, 'METHOD_NOT_ALLOWED', 'Only messages can be added here.');
  });
  app.get('/healthz', (_req, res) => void res.json({ status: 'ok' }));
  app.get(LIST_PATH, (req, res) => list(new URLSearchParams(req.url.split('?')[1]), conversations, res));
  app.get(`${LIST_PATH}/:id`, (req, res) => {
    const found = conversations.find(({ id }) => id === req.params.id);
    if (found === undefined) noSuchConversation(res);
    else res.json(found);
  });
  app.post(`${LIST_PATH}/:id/messages`, express.json(), (req, res) => {
    const found = conversations.find(({ id }) => id === req.params.id);
    const text: unknown = req.body?.text;
    if (found === undefined) return void noSuchConversation(res);
    if (typeof text !== 'string') return void invalidMessage(res);
    const createdAt = new Date().toISOString();
    const message = { id: `msg_${randomUUID()}`, direction: 'OUTBOUND', text, createdAt };
    found.messages.push(message);
    res.status(201).json(message);
  });
  app.use((_req, res) => refuse(res, 404, 'NOT_FOUND', 'There is nothing here.'));
  app.use(unreadable);
  return app;
}

/** An id that cannot be decoded, by the router, or a body that is not JSON, by its parser. */
const unreadable: ErrorRequestHandler = (error, _req, res, _next) =>
  error instanceof URIError ? noSuchConversation(res) : invalidMessage(res);

function invalidMessage(res: Response): Response {
  return refuse(res, 400, 'INVALID_MESSAGE', 'A message is a JSON object with a text.');
}

function noSuchConversation(res: Response): Response {
  return refuse(res, 404, 'CONVERSATION_NOT_FOUND', 'There is no such conversation.');
}

/**
 * Lists newest first. The cursor is the id of the page's last conversation, encoded so that clients don't rely on it.
 */
function list(query: URLSearchParams, conversations: readonly Conversation[], res: Response): Response {
  const limit = Number(query.get('limit') ?? DEFAULT_PAGE);
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE) {
    return refuse(res, 400, 'INVALID_LIMIT', `limit is a whole number from 1 to ${MAX_PAGE}.`);
  }
  const cursor = query.get('cursor');
  const after = cursor === null ? -1 : conversations.findIndex(({ id }) => cursorOf(id) === cursor);
  if (cursor !== null && after < 0) {
    return refuse(res, 400, 'INVALID_CURSOR', 'cursor is not the next_cursor of a page.');
  }
  const status = query.get('status');
  const channel = query.get('channel');
  const matching = conversations
    .slice(after + 1)
    .filter((item) => (status === null || item.status === status) && (channel === null || item.channel === channel));
  const data = matching.slice(0, limit);
  const last = data.at(-1);
  return res.json({ data, next_cursor: last && matching.length > limit ? cursorOf(last.id) : null });
}

function refuse(res: Response, status: number, code: string, message: string): Response {
  return res.status(status).json({ error: { code, message } });
}

function cursorOf(id: string): string {
  return Buffer.from(id).toString('base64url');
}
