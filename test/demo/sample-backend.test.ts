import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CHANNELS, type Conversation, createConversations, STATUSES } from '../../demo/sample-backend/conversations.ts';
import { type SampleBackend, startSampleBackend } from '../../demo/sample-backend/sample-backend.ts';

/** The newest conversation: a change of this id means that the whole data set has changed. */
const FIRST_ID = 'conv_01KF0BMKXZZPWHQNN12ZTYQ3XZ';

interface Page {
  data: Conversation[];
  next_cursor: string | null;
}

let backend: SampleBackend;
beforeAll(async () => {
  backend = await startSampleBackend({ host: '127.0.0.1', port: 0 });
});
afterAll(() => backend.close());

const get = (path: string, init?: RequestInit) => fetch(new URL(path, backend.url), init);

async function readPage(query: string): Promise<Page> {
  const answer = await get(`/api/v1/conversations?${query}`);
  expect(answer.status).toBe(200);
  return (await answer.json()) as Page;
}

async function readAll(query: string): Promise<Conversation[]> {
  const all: Conversation[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: Page = await readPage(cursor ? `${query}&cursor=${cursor}` : query);
    expect(page.data.length).toBeGreaterThan(0);
    all.push(...page.data);
    cursor = page.next_cursor;
  }
  return all;
}

describe('the made-up conversations', () => {
  it('are the same in every run', () => {
    expect(createConversations()).toEqual(createConversations());
    expect(createConversations()[0]?.id).toBe(FIRST_ID);
  });

  it('have the documented members in the documented formats', () => {
    for (const conversation of createConversations()) {
      expect(conversation.id).toMatch(/^conv_[0-9A-HJKMNP-TV-Z]{26}$/);
      expect(CHANNELS).toContain(conversation.channel);
      expect(STATUSES).toContain(conversation.status);
      expect(conversation.contact.phone).toMatch(/^\+\d{11,12}$/);
      expect(conversation.messages.length).toBeGreaterThan(0);
      for (const { createdAt } of [conversation, ...conversation.messages]) {
        expect(new Date(createdAt).toISOString()).toBe(createdAt);
      }
    }
  });

  it('have unique ids, newest first', () => {
    const ids = createConversations().map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toEqual(ids.toSorted().reverse());
  });
});

describe('the list', () => {
  it('gives every conversation exactly once over its pages', async () => {
    expect(await readAll('limit=37')).toEqual(createConversations());
  });

  it('ends without a cursor when the last page is full', async () => {
    const count = createConversations().length;
    expect(count % 80).toBe(0);
    expect(await readAll('limit=80')).toHaveLength(count);
  });

  it('filters by status and channel across pages', async () => {
    const wanted = createConversations().filter(({ status, channel }) => status === 'OPEN' && channel === 'SMS');
    expect(wanted.length).toBeGreaterThan(7);
    expect(await readAll('limit=7&status=OPEN&channel=SMS')).toEqual(wanted);
    expect((await readPage('status=NO_SUCH')).data).toEqual([]);
  });

  it.each(['limit=0', 'limit=101', 'limit=ten', 'cursor=nonsense'])('refuses %s', async (query) => {
    const answer = await get(`/api/v1/conversations?${query}`);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toHaveProperty('error.code');
  });
});

describe('one conversation', () => {
  it('is found by its id', async () => {
    const [first] = createConversations();
    const answer = await get(`/api/v1/conversations/${first?.id}`);
    expect(await answer.json()).toEqual(first);
  });

  it.each(['unknown', '%ff', 'a%2Fb'])("that does not exist (%s) is a 404 in the backend's own format", async (id) => {
    const answer = await get(`/api/v1/conversations/${id}`);
    expect(answer.status).toBe(404);
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(await answer.json()).toHaveProperty('error.code', 'CONVERSATION_NOT_FOUND');
  });

  it('gets 304 while its ETag holds', async () => {
    const path = `/api/v1/conversations/${FIRST_ID}`;
    const etag = (await get(path)).headers.get('etag') ?? '';
    for (const condition of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const answer = await get(path, { headers: { 'If-None-Match': condition } });
      expect(answer.status, condition).toBe(304);
      expect(answer.headers.get('etag')).toBe(etag);
      expect(await answer.text()).toBe('');
    }
    expect((await get(path, { headers: { 'If-None-Match': '"other"' } })).status).toBe(200);
  });
});

it('HEAD has the headers of GET and no content', async () => {
  for (const path of ['/api/v1/conversations', '/healthz', '/nowhere']) {
    const [whole, head] = await Promise.all([get(path), get(path, { method: 'HEAD' })]);
    expect(head.status).toBe(whole.status);
    for (const name of ['content-length', 'content-type', 'etag']) {
      expect(head.headers.get(name)).toBe(whole.headers.get(name));
    }
    expect(await head.text()).toBe('');
    await whole.text();
  }
});

it('is healthy, and read-only but for messages', async () => {
  expect((await get('/healthz')).status).toBe(200);
  for (const [method, path] of [
    ['DELETE', '/api/v1/conversations'],
    ['POST', '/api/v1/conversations'],
    ['PUT', `/api/v1/conversations/${FIRST_ID}/messages`],
  ] as const) {
    const answer = await get(path, { method });
    expect(answer.status, `${method} ${path}`).toBe(405);
    expect(answer.headers.get('allow')).toBe('GET, HEAD');
  }
});

describe('a posted message', () => {
  const post = (id: string, body: string, type = 'application/json') =>
    get(`/api/v1/conversations/${id}/messages`, { method: 'POST', body, headers: { 'Content-Type': type } });

  it('is responded with, and stays in its conversation', async () => {
    const other = await startSampleBackend({ host: '127.0.0.1', port: 0 });
    try {
      const url = new URL(`/api/v1/conversations/${FIRST_ID}`, other.url);
      const headers = { 'Content-Type': 'application/json' };
      const answer = await fetch(`${url}/messages`, { method: 'POST', body: '{"text":"Hello"}', headers });
      expect(answer.status).toBe(201);
      const message = await answer.json();
      expect(message).toMatchObject({ direction: 'OUTBOUND', text: 'Hello' });
      const { messages } = (await (await fetch(url)).json()) as Conversation;
      expect(messages.at(-1)).toEqual(message);
    } finally {
      await other.close();
    }
  });

  it.each([
    ['JSON that is cut off', '{"text":', 'application/json'],
    ['JSON without a text', '{"txt":"a"}', 'application/json'],
    ['another type', '{"text":"a"}', 'text/plain'],
  ])('as %s is refused', async (_, body, type) => {
    const answer = await post(FIRST_ID, body, type);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toHaveProperty('error.code', 'INVALID_MESSAGE');
  });

  it.each(['unknown', '%ff'])('of a conversation that does not exist (%s) is a 404', async (id) => {
    expect((await post(id, '{"text":"a"}')).status).toBe(404);
  });
});

it('leaves nothing listening after close', async () => {
  const other = await startSampleBackend({ host: '127.0.0.1', port: 0 });
  expect((await fetch(new URL('/healthz', other.url))).status).toBe(200);
  await other.close();
  await expect(fetch(new URL('/healthz', other.url))).rejects.toThrow();
});
