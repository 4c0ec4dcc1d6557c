import { describe, expect, it } from 'vitest';
import { fieldValue, fieldValues } from './support/http-reader.ts';
import { head, useHttpSystem } from './support/system.ts';

const LIMITS = { failures_per_minute: 10_000 };
const BEARER = 'Bearer realm="api"';
const API_KEY = 'ApiKey realm="api", header="X-API-Key"';

/** Ways to write `X-API-Key` that some server takes for the same name. */
const OTHER_SPELLINGS = ['_', '.', '~', '!', '|', '*', "'", '`', '^', '+', '#', '$', '%', '&'].flatMap((separator) =>
  ['X-API-Key', 'x-api-key', 'X-aPI-kEY'].map((name) => name.replaceAll('-', separator)),
);

function withFields(...fields: string[]): string {
  return head('GET /v1/conversations HTTP/1.1', 'Host: a', ...fields);
}

describe('with key_headers: [Authorization, X-API-Key]', () => {
  const system = useHttpSystem({ config: { auth: { ...LIMITS, key_headers: ['Authorization', 'X-API-Key'] } } });
  const { expectPassed, expectRefused } = system;

  it.each(['Authorization: Bearer KEY', 'X-API-Key: KEY', 'x-api-key:KEY', 'X-APi-Key: \t KEY \t', 'x-aPi-KEy: KEY'])(
    '%s passes, without the key',
    async (field) => {
      const { seen } = await expectPassed(withFields(field, 'Connection: X-API-Key'));
      expect(JSON.stringify(seen.fields)).not.toContain(system.key);
    },
  );

  it('other spellings hold no key and do not reach the backend', async () => {
    for (const spelling of OTHER_SPELLINGS) {
      await expectRefused(withFields(`${spelling}: KEY`), 'missing_key');
      const { seen } = await expectPassed(withFields(`${spelling}: marked-value`, 'X-API-Key: KEY'));
      expect(JSON.stringify(seen.fields), spelling).not.toContain('marked-value');
    }
  });

  it.each([
    ['none', []],
    ['another scheme', ['Authorization: Basic dXNlcjpwYXNzd29yZA==']],
    ['the bare key in Authorization', ['Authorization: KEY']],
    ['a header that is not listed', ['X-Api-Keys: KEY', 'Api-Key: KEY']],
    ['a cookie', ['Cookie: X-API-Key=KEY']],
  ])('%s: missing', async (_, fields) => {
    const answer = await expectRefused(withFields(...fields), 'missing_key');
    expect(fieldValues(answer ?? { fields: [] }, 'www-authenticate')).toEqual([BEARER]);
    expect(JSON.parse(answer?.content ?? '').detail).toContain(
      '"Authorization: Bearer <API_KEY>" or "X-API-Key: <API_KEY>".',
    );
  });

  it.each([
    ['both with the same key', ['Authorization: Bearer KEY', 'X-API-Key: KEY']],
    ['both, one with another scheme', ['X-API-Key: KEY', 'Authorization: Basic x']],
    ['both, one empty', ['X-API-Key: KEY', 'Authorization:']],
    ['both, the other one empty', ['Authorization: Bearer KEY', 'X-API-Key:']],
    ['two with the same key', ['X-API-Key: KEY', 'x-api-key: KEY']],
    ['two, one empty', ['X-API-Key: KEY', 'X-API-Key:']],
    ['two Authorization headers', ['Authorization: Bearer KEY', 'authorization: Bearer KEY']],
    ['an empty one', ['X-API-Key:']],
    ['white space', ['X-API-Key: \t ']],
    ['an empty Authorization', ['Authorization:']],
    ['a list', ['X-API-Key: KEY, KEY']],
    ['a list without space', ['X-API-Key: KEY,KEY']],
    ['a scheme before the bare key', ['X-API-Key: Bearer KEY']],
    ['a quoted key', ['X-API-Key: "KEY"']],
    ['a space inside', ['X-API-Key: KEY x']],
    ['a tab inside', ['X-API-Key: KEY\tx']],
    ['7 characters', ['X-API-Key: abcdefg']],
    ['513 characters', [`X-API-Key: ${'a'.repeat(513)}`]],
    ['10 KiB', [`X-API-Key: ${'a'.repeat(10_240)}`]],
  ])('%s: malformed', async (_, fields) => {
    for (const method of ['GET', 'HEAD']) {
      const answer = await expectRefused(withFields(...fields).replace('GET', method), 'malformed_key');
      expect(fieldValues(answer ?? { fields: [] }, 'www-authenticate')).toEqual([`${BEARER}, error="invalid_request"`]);
    }
  });

  it('a byte that belongs into no key: malformed', async () => {
    for (let code = 0x21; code <= 0xff; code++) {
      const byte = String.fromCharCode(code);
      if (/[A-Za-z0-9\-._~+/]/.test(byte) || code === 0x7f) continue;
      await expectRefused(withFields(`X-API-Key: ${byte}KEY`), 'malformed_key');
      await expectRefused(withFields(`X-API-Key: KEY${byte}x`), 'malformed_key');
    }
  });

  it('an unknown key: invalid', async () => {
    const answer = await expectRefused(withFields('X-API-Key: unknown-key'), 'invalid_key');
    expect(fieldValues(answer ?? { fields: [] }, 'www-authenticate')).toEqual([`${BEARER}, error="invalid_token"`]);
  });

  it('a key in the query is found only if no header holds one', async () => {
    await expectRefused(withFields().replace('conversations', 'conversations?x=KEY'), 'key_in_query');
    await expectPassed(withFields('X-API-Key: KEY').replace('conversations', 'conversations?x=KEY'));
  });

  it('a request id that shares text with the key is not taken', async () => {
    for (const id of ['KEY', 'x-KEY-1']) {
      const { answer, seen } = await expectPassed(withFields(`X-Request-Id: ${id}`, 'X-API-Key: KEY'));
      expect(JSON.stringify([answer, seen])).not.toContain(system.key);
    }
    const { seen } = await expectPassed(withFields('X-Request-Id: their-own-id', 'X-API-Key: KEY'));
    expect(fieldValue(seen, 'x-request-id')).toBe('their-own-id');
  });
});

describe('with key_headers: [X-API-Key]', () => {
  const system = useHttpSystem({ config: { auth: { ...LIMITS, key_headers: ['X-API-Key'] } } });

  it.each([
    [[], 401, 'missing_key', API_KEY],
    [['Authorization: Bearer KEY'], 401, 'missing_key', API_KEY],
    [['X_API_Key: KEY'], 401, 'missing_key', API_KEY],
    [['X-API-Key:'], 400, 'malformed_key', `${API_KEY}, error="invalid_request"`],
    [['X-API-Key: KEY', 'X-API-Key: KEY'], 400, 'malformed_key', `${API_KEY}, error="invalid_request"`],
    [
      ['X-API-Key: KEY', 'Authorization: Basic a', 'authorization: Basic a'],
      400,
      'malformed_key',
      `${API_KEY}, error="invalid_request"`,
    ],
    [['X-API-Key: unknown-key'], 401, 'invalid_key', `${API_KEY}, error="invalid_token"`],
  ])('%j: %i %s', async (fields, status, code, challenge) => {
    const { answers, seen } = await system.attempt(withFields(...fields));
    expect(seen).toEqual([]);
    const [answer] = answers;
    expect([answer?.status, JSON.parse(answer?.content ?? '').code]).toEqual([status, code]);
    expect(fieldValues(answer ?? { fields: [] }, 'www-authenticate')).toEqual([challenge]);
    expect(answer?.content).not.toContain('Bearer');
  });

  it.each(['Bearer a-token-of-an-end-user', 'Basic dXNlcjpwYXNzd29yZA==', '', 'any thing; at="all"'])(
    'Authorization: %s reaches the backend as it is',
    async (value) => {
      const { answers, seen } = await system.attempt(withFields(`aUTHORIZATION: ${value}`, 'x-api-key: KEY'));
      expect(answers.map(({ status }) => status)).toEqual([200]);
      expect(seen[0]?.fields).toContainEqual(['aUTHORIZATION', value]);
      expect(JSON.stringify(seen)).not.toContain(system.key);
    },
  );
});

describe('with credentials: forward', () => {
  const system = useHttpSystem({
    config: { auth: { key_headers: ['X-API-Key', 'Authorization'] }, upstream: { credentials: 'forward' } },
  });

  it('the header that was sent passes, other spellings do not', async () => {
    const spellings = OTHER_SPELLINGS.map((name) => `${name}: marked-value`);
    const { seen } = await system.attempt(withFields(...spellings, 'x-API-key: KEY'));
    expect(seen[0]?.fields).toContainEqual(['x-API-key', system.key]);
    expect(JSON.stringify(seen)).not.toContain('marked-value');
    const other = await system.attempt(withFields(...spellings, 'Authorization: Bearer KEY'));
    expect(other.seen[0]?.fields).toContainEqual(['Authorization', `Bearer ${system.key}`]);
    expect(JSON.stringify(other.seen)).not.toContain('marked-value');
  });

  it('Connection may name it: then it ends at the gateway', async () => {
    const { seen } = await system.attempt(withFields('X-API-Key: KEY', 'Connection: x-api-key'));
    expect(seen).toHaveLength(1);
    expect(JSON.stringify(seen)).not.toContain(system.key);
  });
});

describe('with credentials: replace', () => {
  const system = useHttpSystem({
    config: {
      auth: { key_headers: ['X-API-Key'] },
      upstream: { credentials: 'replace', authorization: 'Basic b3Vycw==' },
    },
  });

  it("the backend gets the gateway's Authorization in place of the client's, and no key", async () => {
    const fields = ['X-API-Key: KEY', 'x_api_key: marked-value', 'authorization: Bearer marked-value'];
    const { seen } = await system.attempt(withFields(...fields, 'Connection: authorization'));
    expect(fieldValues(seen[0] ?? { fields: [] }, 'authorization')).toEqual(['Basic b3Vycw==']);
    expect(JSON.stringify(seen)).not.toMatch(`marked-value|${system.key}`);
  });
});
