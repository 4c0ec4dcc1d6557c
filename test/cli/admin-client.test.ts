/** The client against what a gateway answers rarely or never, by real servers in its place. */
import { expect, it } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { AdminClient } from '../../src/api/client/admin-client.ts';
import { AdminRefusal } from '../../src/api/client/failures.ts';
import { problemDocument, startServer } from './support.ts';

const TOKEN = 'marked-token';
const KEY = {
  id: 'x',
  prefix: null,
  customer: 'acme',
  customer_name: null,
  name: null,
  created_at: null,
  expires_at: null,
  scopes: null,
  allowed_addresses: null,
  requests_per_hour: null,
  used: null,
  revoked_at: null,
  state: 'live',
  replaced_by: null,
  last_used_at: null,
};

const clientOf = (url: string, timeoutMs = 5000) =>
  new AdminClient({ url, token: TOKEN, tokenSource: 'SOME_VARIABLE', timeoutMs });

/** What a call rejects with. */
async function failureOf(promise: Promise<unknown>): Promise<Error> {
  return promise.then(
    () => expect.unreachable('the call was answered'),
    (error: Error) => error,
  );
}

it('sends the token, and a body as JSON', async () => {
  const url = await startServer((req, res) => {
    req.setEncoding('utf8').once('data', (body: string) => {
      const { method, url: target, headers } = req;
      const { authorization, 'content-type': type } = headers;
      res.end(JSON.stringify({ ...KEY, seen: { method, target, authorization, type, body } }));
    });
  });
  const body = { name: null, expires_at: undefined };
  const changed = await clientOf(url).call('PATCH /admin/v1/keys/:keyId', { keyId: 'a/b?c#%2e', body });
  expect(changed).toEqual({
    ...KEY,
    seen: {
      method: 'PATCH',
      target: '/admin/v1/keys/a%2Fb%3Fc%23%252e',
      authorization: `Bearer ${TOKEN}`,
      type: 'application/json',
      body: '{"name":null}',
    },
  });
});

it.each(['', '.', '..'])('makes no path of the id "%s": it would be the path of something else', async (keyId) => {
  const failure = await failureOf(clientOf('http://127.0.0.1:1').call('DELETE /admin/v1/keys/:keyId', { keyId }));
  expect(failure).toBeInstanceOf(RangeError);
});

it('gathers pages, short and empty ones too, and what is on two of them once', async () => {
  const keyOf = (id: string) => ({ ...KEY, id });
  const pages: Record<string, { items: object[]; next_cursor: string | null }> = {
    '': { items: [keyOf('a'), keyOf('b')], next_cursor: 'one&two' },
    'one&two': { items: [], next_cursor: 'three' },
    three: { items: [keyOf('b'), keyOf('c')], next_cursor: null },
  };
  const asked: string[] = [];
  const url = await startServer((req, res) => {
    const { searchParams } = new URL(req.url ?? '', 'http://admin');
    asked.push(searchParams.toString());
    res.end(JSON.stringify(pages[searchParams.get('cursor') ?? '']));
  });
  const items = await clientOf(url).list('GET /admin/v1/keys', { query: { unused_days: '30', prefix: undefined } });
  expect(items).toEqual(['a', 'b', 'c'].map(keyOf));
  expect(asked).toEqual([
    'unused_days=30&limit=1000',
    'unused_days=30&limit=1000&cursor=one%26two',
    'unused_days=30&limit=1000&cursor=three',
  ]);
});

it('reads an export page by page, and tells the cursor that continues it', async () => {
  const asked: string[] = [];
  const url = await startServer((req, res) => {
    asked.push(req.url ?? '');
    if (asked.length === 3) return void req.socket.destroy();
    res.setHeader('link', `</admin/v1/usage/export?format=csv&cursor=9.page%26${asked.length}>; rel="next"`);
    res.end(`line ${asked.length}\n`);
  });
  const pages: { text: string; next: string | undefined }[] = [];
  const reading = (async () => {
    const query = { format: 'csv', from: undefined } as const;
    for await (const page of clientOf(url).exportUsage('GET /admin/v1/usage/export', { query })) pages.push(page);
  })();
  expect((await failureOf(reading)).message).toContain('did not respond');
  expect(pages).toEqual([
    { text: 'line 1\n', next: '9.page&1' },
    { text: 'line 2\n', next: '9.page&2' },
  ]);
  const path = '/admin/v1/usage/export?format=csv';
  expect(asked).toEqual([path, `${path}&cursor=9.page%261`, `${path}&cursor=9.page%262`]);
});

it('sends a config file as YAML, and no content type where a route has no body', async () => {
  const types: (string | undefined)[] = [];
  const url = await startServer((req, res) => {
    types.push(req.headers['content-type']);
    res.end('{}');
  });
  await failureOf(clientOf(url).call('POST /admin/v1/config/preview', { body: 'plans: {}' }));
  await failureOf(clientOf(url).call('POST /admin/v1/config/reload'));
  expect(types).toEqual(['application/yaml', undefined]);
});

it('asks for no more than is wanted', async () => {
  const asked: string[] = [];
  const url = await startServer((req, res) => {
    asked.push(new URL(req.url ?? '', 'http://admin').searchParams.get('limit') ?? '');
    res.end(JSON.stringify({ items: [{ ...KEY, id: `key-${asked.length}` }], next_cursor: 'more' }));
  });
  expect(await clientOf(url).list('GET /admin/v1/keys', { maxItems: 3 })).toHaveLength(3);
  expect(asked).toEqual(['3', '2', '1']);
});

it('shows the problem document of a refusal, without control characters', async () => {
  const problem = problemDocument({ status: 422, title: 'No', detail: 'plan: \u001b[2Jbad', code: 'unprocessable' });
  const url = await startServer((_req, res) => res.writeHead(422).end(JSON.stringify(problem)));
  const failure = await failureOf(clientOf(url).call('GET /admin/v1/keys/:keyId', { keyId: 'x' }));
  expect(failure).toBeInstanceOf(AdminRefusal);
  expect(failure.message).toBe('No: plan: \\u{1b}[2Jbad (unprocessable)');
});

it('says which address and setting to check where nothing listens', async () => {
  const url = `http://127.0.0.1:${await freePort()}`;
  const { message } = await failureOf(clientOf(url).call('GET /admin/v1/keys/:keyId', { keyId: 'x' }));
  expect(message).toContain(`cannot reach the admin API at ${url}: nothing listens on it`);
  expect(message).toContain('--admin-url');
});

it('knows of a port that HTTP may not use that nothing was sent', async () => {
  const { message } = await failureOf(
    clientOf('http://127.0.0.1:6000').call('GET /admin/v1/keys/:keyId', { keyId: 'x' }),
  );
  expect(message).toContain('cannot reach the admin API at http://127.0.0.1:6000: this port is reserved');
});

it('waits no longer than its deadline, and says that the outcome is not known', async () => {
  const url = await startServer((_req, res) => void res.writeHead(200).write('{'));
  const { message } = await failureOf(
    clientOf(url, 100).call('POST /admin/v1/keys/:keyId/rotate', { keyId: 'x', body: {} }),
  );
  expect(message).toContain(`the admin API at ${url} did not respond: no complete response within 0.1 seconds`);
  expect(message).toContain('unknown');
});

it('does not take a connection that broke off for a call that was never made', async () => {
  const url = await startServer((req) => void req.socket.destroy());
  const { message } = await failureOf(
    clientOf(url).call('POST /admin/v1/keys/:keyId/rotate', { keyId: 'x', body: {} }),
  );
  expect(message).toContain('It is unknown whether the call took effect');
});

it.each([
  ['a page of another server', 200, '<html>', /status 200, but not the document expected \(the body\)/],
  ['a document of another kind', 200, JSON.stringify({ ...KEY, id: 7 }), /not the document expected \(id\)/],
  ['an error of another server', 502, 'Bad Gateway', /status 502 without a problem document/],
])('does not accept %s as a response', async (_what, status, body, message) => {
  const url = await startServer((_req, res) => res.writeHead(status).end(body));
  const failure = await failureOf(clientOf(url).call('GET /admin/v1/keys/:keyId', { keyId: 'x' }));
  expect(failure.message).toMatch(message);
  expect(failure.message).toContain('--admin-url');
});

it('does not carry the token to where it is redirected', async () => {
  let asked = 0;
  const elsewhere = await startServer((_req, res) => {
    asked++;
    res.end(JSON.stringify(KEY));
  });
  const url = await startServer((_req, res) => res.writeHead(307, { location: elsewhere }).end());
  expect((await failureOf(clientOf(url).call('GET /admin/v1/keys/:keyId', { keyId: 'x' }))).message).toContain(
    'status 307',
  );
  expect(asked).toBe(0);
});
