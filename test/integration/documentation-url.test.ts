import { writeFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { stringify } from 'yaml';
import { takeOver } from '../control/reload/support.ts';
import { exchangeRaw } from '../support/raw-http.ts';
import { startRedisSystem } from '../support/redis-system.ts';

const NOT_A_REQUEST = 'nonsense\r\n\r\n';
const WITHOUT_KEY = 'GET /v1/conversations HTTP/1.1\r\nHost: a\r\n\r\n';

it('every refusal links the configured page with its code, from the reload on that sets it', async () => {
  const { gateway } = await startRedisSystem();
  const linkOf = async (bytes: string) => JSON.parse((await exchangeRaw(gateway.public, bytes)).body).documentation_url;
  expect(await linkOf(WITHOUT_KEY)).toBeUndefined();

  const documentation_url = 'https://docs.example/errors?of={code}#{code}';
  await writeFile(gateway.file, stringify({ ...gateway.sections, documentation_url }));
  expect(await takeOver(gateway)).toBe('applied');

  expect(await linkOf(WITHOUT_KEY)).toBe('https://docs.example/errors?of=missing_key#missing_key');
  expect(await linkOf(NOT_A_REQUEST)).toBe('https://docs.example/errors?of=bad_request#bad_request');
});
