import { expect, it, test } from 'vitest';
import { OWN_HEADER_NAMES } from '../../src/edge/public-app.ts';
import { isKeyHeader, NEVER_FORWARDED } from '../../src/formats/header-names.ts';
import { load, MINIMAL, problemsOf } from './support.ts';

const problemsWith = (names: string) => problemsOf(`${MINIMAL}auth:\n  key_headers: ${names}\n`);

it('the default is Authorization', async () => {
  expect((await load(MINIMAL)).auth.keyHeaders).toEqual(['Authorization']);
});

it.each(['[X-API-Key]', '[Authorization, x-api-key, api_key, Ocp-Apim-Subscription-Key]', '[apikey]'])(
  '%s is accepted, as it is written',
  async (names) => {
    expect((await load(`${MINIMAL}auth:\n  key_headers: ${names}\n`)).auth.keyHeaders.join(', ')).toBe(
      names.slice(1, -1),
    );
  },
);

it.each(['[]', '[A1, B1, C1, D1, E1]'])('%s is refused: one to four names', async (names) => {
  expect(await problemsWith(names)).toEqual(['gateway.yaml:4: auth.key_headers: must have one to four names']);
});

it.each([
  ...['Host', 'cookie', 'Set-Cookie', 'Content-Length', 'Content-Type', 'Accept', 'If-Match', 'Connection', 'TE'],
  ...['Origin', 'Sec-Fetch-Site', 'sec-anything', 'Referer', 'User-Agent', 'Accept-Language', 'DNT', 'Range', 'Via'],
  ...['X-Tollgate-Customer', 'X_Tollgate_Plan', 'X-Forwarded-For', 'X-Forwarded-Key', 'X-Request-Id', 'X_Request_Id'],
  ...['Proxy-Authorization', 'WWW-Authenticate', 'RateLimit', 'X-RateLimit-Limit', 'X-Api-Key-Expires-At', 'Expect'],
  ...['traceparent', 'TraceState', 'baggage', 'Forwarded', 'X-Real-IP', 'Retry-After', 'Trailer', 'Upgrade', 'Date'],
  ...['Deprecation', 'Sunset', 'Client-Cert', 'CDN-Loop', 'DPoP-Nonce', 'Mime_Version', 'X-Original-Method'],
  ...['""', '"X API Key"', '"X-API-Key:"', '"X-Schlüssel"', '1-key', '_key', `X${'a'.repeat(64)}`, '7', 'null', '[a]'],
])('%s is refused', async (name) => {
  const problems = await problemsWith(`[X-API-Key, ${name}]`);
  expect(problems).toHaveLength(1);
  expect(problems[0]).toMatch(/^gateway\.yaml:4: auth\.key_headers\[1\]: must be the name of a header without another/);
});

it.each([
  ['X-API-Key, x-api-key', 1],
  ['Authorization, X-API-Key, X_API_Key', 2],
  ['authorization, Authorization', 1],
])('[%s]: two names that servers may take for one are refused', async (names, index) => {
  expect(await problemsWith(`[${names}]`)).toEqual([
    `gateway.yaml:4: auth.key_headers[${index}]: is the same name as key_headers[${index - 1}], for servers that read _ as -; keep one`,
  ]);
});

test('a header that the gateway drops or sends can hold no key', () => {
  expect([...NEVER_FORWARDED, ...OWN_HEADER_NAMES].filter(isKeyHeader)).toEqual([]);
});
