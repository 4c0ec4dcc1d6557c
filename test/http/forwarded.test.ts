import { describe, expect, it } from 'vitest';
import { fieldValues, type ReadRequest } from './support/http-reader.ts';
import { get, head, useHttpSystem } from './support/system.ts';

const { attempt } = useHttpSystem({
  config: {
    listen: { trusted_proxies: ['127.0.0.1/32', '10.0.0.0/8'], trust_forwarded_host: true },
    upstream: { preserve_host: true },
  },
});

async function seenWith(...fields: string[]): Promise<ReadRequest> {
  const { answers, seen } = await attempt(get('/v1/conversations', ...fields));
  expect(answers.map(({ status }) => status)).toEqual([200]);
  const [request] = seen;
  if (request === undefined) throw new Error('the backend saw nothing');
  return request;
}

describe('behind a trusted proxy', () => {
  it('X-Forwarded-For is extended by the proxy, once, whatever its fields were', async () => {
    for (const [fields, expected] of [
      [[], '127.0.0.1'],
      [['X-Forwarded-For: 192.0.2.1'], '192.0.2.1, 127.0.0.1'],
      [['X-Forwarded-For: 192.0.2.1', 'x-forwarded-for: 10.0.0.1'], '192.0.2.1, 10.0.0.1, 127.0.0.1'],
      [['X-Forwarded-For:'], '127.0.0.1'],
      [['X_Forwarded_For: 192.0.2.1', 'X-Forwarded_For: 192.0.2.2', 'Forwarded: for=192.0.2.3'], '127.0.0.1'],
    ] as const) {
      expect(fieldValues(await seenWith(...fields), 'x-forwarded-for')).toEqual([expected]);
    }
  });

  it('X-Forwarded-Proto and -Host are used if they are valid', async () => {
    for (const [proto, host, expected] of [
      ['https', 'api.example', ['https', 'api.example']],
      ['http, https', 'a.example, b.example', ['https', 'b.example']],
      ['gopher', 'a/b', ['http', 'api.example']],
      ['', 'u@a', ['http', 'api.example']],
      ['javascript:1', '<script>', ['http', 'api.example']],
    ] as const) {
      const request = await seenWith(`X-Forwarded-Proto: ${proto}`, `X-Forwarded-Host: ${host}`);
      expect([fieldValues(request, 'x-forwarded-proto'), fieldValues(request, 'x-forwarded-host')]).toEqual(
        expected.map((each) => [each]),
      );
    }
  });

  it('other X-Forwarded-* are dropped all the same', async () => {
    const request = await seenWith(
      'X-Forwarded-Port: 1',
      'X-Forwarded-Prefix: /x',
      'X-Forwarded-Server: x',
      'X-Forwarded: x',
    );
    expect(request.fields.map(([name]) => name.toLowerCase()).filter((name) => name.startsWith('x-forwarded'))).toEqual(
      ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host'],
    );
  });
});

it('a preserved Host is the requested one, once, and first', async () => {
  expect((await seenWith()).fields[0]).toEqual(['Host', 'api.example']);
  const { seen } = await attempt(
    head('GET http://asked.example:81/v1/conversations HTTP/1.1', 'Host: other.example', 'Authorization: Bearer KEY'),
  );
  expect(seen.map((request) => fieldValues(request, 'host'))).toEqual([['asked.example:81']]);
});
