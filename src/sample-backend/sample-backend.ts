/**
 * A Conversations service for trying out the gateway: read-only, in memory, without credentials. Its paging, error
 * format and caching headers are arbitrary; the gateway relies on none of them.
 */
import { hash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, isIPv6 } from 'node:net';
import { type Conversation, createConversations } from './conversations.ts';

export interface SampleBackend {
  /** Origin, with the actual port. */
  readonly url: URL;
  /** Closes the server, and aborts requests in progress. */
  close(): Promise<void>;
}

const LIST_PATH = '/api/v1/conversations';
const DEFAULT_PAGE = 20;
const MAX_PAGE = 100;

interface SampleResponse {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Starts the server. Port 0 picks any free port. Rejects if it cannot listen on the address. */
export async function startSampleBackend({ host, port }: { host: string; port: number }): Promise<SampleBackend> {
  const conversations = createConversations();
  const server = createServer((req, res) => send(req, res, respond(req, conversations)));
  server.listen(port, host);
  await once(server, 'listening');
  const { address, port: actualPort } = server.address() as AddressInfo;
  return {
    url: new URL(`http://${isIPv6(address) ? `[${address}]` : address}:${actualPort}`),
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function respond(req: IncomingMessage, conversations: readonly Conversation[]): SampleResponse {
  if (req.method !== 'GET' && req.method !== 'HEAD') {
    return { ...failure(405, 'METHOD_NOT_ALLOWED', 'This service is read-only.'), headers: { Allow: 'GET, HEAD' } };
  }
  const [path = '', query = ''] = (req.url ?? '').split('?', 2);
  if (path === '/healthz') return { status: 200, body: { status: 'ok' } };
  if (path === LIST_PATH) return list(new URLSearchParams(query), conversations);
  if (path.startsWith(`${LIST_PATH}/`)) {
    const id = decode(path.slice(LIST_PATH.length + 1));
    const found = conversations.find((conversation) => conversation.id === id);
    return found
      ? { status: 200, body: found }
      : failure(404, 'CONVERSATION_NOT_FOUND', 'There is no such conversation.');
  }
  return failure(404, 'NOT_FOUND', 'There is nothing here.');
}

/**
 * Lists newest first. The cursor is the id of the page's last conversation, encoded so that clients don't rely on it.
 */
function list(query: URLSearchParams, conversations: readonly Conversation[]): SampleResponse {
  const limit = Number(query.get('limit') ?? DEFAULT_PAGE);
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE) {
    return failure(400, 'INVALID_LIMIT', `limit is a whole number from 1 to ${MAX_PAGE}.`);
  }
  const cursor = query.get('cursor');
  const after = cursor === null ? -1 : conversations.findIndex(({ id }) => id === unwrapCursor(cursor));
  if (cursor !== null && after < 0) return failure(400, 'INVALID_CURSOR', 'cursor is not the next_cursor of a page.');

  const status = query.get('status');
  const channel = query.get('channel');
  const matching = conversations
    .slice(after + 1)
    .filter((item) => (status === null || item.status === status) && (channel === null || item.channel === channel));
  const data = matching.slice(0, limit);
  const last = data.at(-1);
  return { status: 200, body: { data, next_cursor: last && matching.length > limit ? wrapCursor(last.id) : null } };
}

function failure(status: number, code: string, message: string): SampleResponse {
  return { status, body: { error: { code, message } } };
}

function send(req: IncomingMessage, res: ServerResponse, { status, body, headers }: SampleResponse): void {
  const text = JSON.stringify(body);
  const etag = `"${hash('sha256', text).slice(0, 32)}"`;
  if (status === 200 && matches(req.headers['if-none-match'], etag)) {
    res.writeHead(304, { ETag: etag, 'Cache-Control': 'private, no-cache' }).end();
    return;
  }
  res.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(text),
    'Cache-Control': 'private, no-cache',
    ...(status === 200 && { ETag: etag }),
    ...headers,
  });
  res.end(req.method === 'HEAD' ? undefined : text);
}

/** Returns whether a list of tags contains `etag`, compared weakly, or is `*` (RFC 9110 §13.1.2). */
function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag);
}

function wrapCursor(id: string): string {
  return Buffer.from(id).toString('base64url');
}

function unwrapCursor(cursor: string): string {
  return Buffer.from(cursor, 'base64url').toString();
}

function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
