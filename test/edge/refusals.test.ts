import { expect, it } from 'vitest';
import { createKeyHeaders, readCredentials } from '../../src/edge/credentials.ts';
import { browserUse, invalidKey, limitExceeded, methodNotAllowed } from '../../src/edge/refusals.ts';
import { hourly } from '../../src/store/windows.ts';

const SETTINGS = { keyHeaders: createKeyHeaders(['Authorization'], 'a') };

it.each([
  [1, 'in a second'],
  [2, 'in 2 seconds'],
  [119, 'in 119 seconds'],
  [120, 'in about 2 minutes'],
  [3241, 'in about 55 minutes'],
  [3600, 'in about 60 minutes'],
])('a wait of %i s reads "%s", and never shorter than it is', (resetSeconds, words) => {
  const [hour] = hourly(1000);
  const decision = {
    outcome: 'quota_exceeded',
    violated: [{ ...hour, resetSeconds }],
    units: 1,
    burst: undefined,
    mode: 'store',
  } as const;
  const { detail, headers } = limitExceeded(decision, 0);
  expect(detail).toBe(`All 1000 requests of the last hour are used. Try again ${words}.`);
  expect(headers).toContain(String(resetSeconds));
});

it('a key in X-API-Key gets a sentence of its own', () => {
  const read = (headers: readonly string[]) => readCredentials(headers, '', SETTINGS);
  const usual = 'Send your API key as "Authorization: Bearer <API_KEY>".';
  expect(read(['X-API-Key', 'k'])).toMatchObject({ problem: { detail: `The X-API-Key header is not read. ${usual}` } });
  expect(read(['X-Api-Keys', 'k'])).toMatchObject({ problem: { detail: usual } });
});

it('an OPTIONS request is told that there is no CORS, other methods are not', () => {
  expect(methodNotAllowed('GET, HEAD', 'OPTIONS').detail).toBe(
    'This path supports GET and HEAD. There is no CORS here: call this API from a server, not from a web page.',
  );
  expect(methodNotAllowed('GET, HEAD', 'POST').detail).toBe('This path supports GET and HEAD.');
});

it('a client gets a new key from whoever gave it the first, or as the page of the API says', () => {
  const paged = { ...SETTINGS, documentationUrl: 'https://docs.example/' };
  for (const refusal of [invalidKey, browserUse]) {
    expect(refusal(SETTINGS).detail).toContain('ask whoever gave you the key for a new one');
    expect(refusal(paged).detail).toContain('create a new one (see documentation_url)');
  }
});
