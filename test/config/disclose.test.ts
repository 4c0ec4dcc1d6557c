import { expect, it } from 'vitest';
import { configReference } from '../../scripts/config-reference.ts';
import { load, MINIMAL, withFolder } from './support.ts';

/** A value that nobody may see. */
const MARK = 'marked-4f0c';
const variable = (name: string) => `\${${name}}`;

async function disclosedAs(yaml: string): Promise<unknown> {
  return (await load(yaml)).disclosed;
}

it('the configuration is disclosed by the names of the file, with its defaults', async () => {
  expect(
    await disclosedAs(`${MINIMAL}plans:\n  starter: { requests_per_hour: 5, shadow: { requests_per_hour: 4 } }\n`),
  ).toMatchObject({
    listen: {
      host: '0.0.0.0',
      port: 8080,
      trusted_proxies: [],
      trust_forwarded_host: false,
      keep_alive_timeout_ms: 75_000,
    },
    admin: null,
    store: { url: 'redis://127.0.0.1:6379', url_file: null, key_prefix: 'tollgate', timeout_ms: 100 },
    upstream: { urls: ['http://backend:3000'], credentials: 'strip', authorization: null },
    routes: [{ path: '/api/v1/conversations', methods: ['GET', 'HEAD'] }, {}],
    aliases: { '/v1': '/api/v1' },
    usage_path: '/api/v1/usage',
    plans: { starter: { requests_per_hour: 5, burst_per_second: null, shadow: { requests_per_hour: 4 } } },
    overrides: {},
  });
});

it('every key of the reference is there, also where nothing is set', async () => {
  const disclosed = await disclosedAs(MINIMAL);
  const sections = configReference().filter(({ path }) => !path.includes('.') && !path.includes('['));
  expect(Object.keys(disclosed as object)).toEqual(sections.map(({ path }) => path));
});

it('no secret is disclosed, only that it is set', async () => {
  const yaml = `
admin: { token: ${MARK} }
store: { url: "redis://gateway:${MARK}@127.0.0.1:6379/3" }
upstream: { urls: ["http://backend:3000"], credentials: replace, authorization: "Basic ${MARK}" }
`;
  const disclosed = await disclosedAs(yaml);
  expect(JSON.stringify(disclosed)).not.toContain(MARK);
  expect(disclosed).toMatchObject({
    admin: { token: '(secret)' },
    store: { url: 'redis://127.0.0.1:6379/3' },
    upstream: { authorization: '(secret)' },
  });
});

it('a secret from a file shows the name of the file', async () => {
  await withFolder({ token: MARK }, async (folder) => {
    const disclosed = await disclosedAs(`${MINIMAL}admin: { token_file: ${folder}/token }\n`);
    expect(disclosed).toMatchObject({ admin: { token: null, token_file: `${folder}/token` } });
    expect(JSON.stringify(disclosed)).not.toContain(MARK);
  });
});

it('an empty secret is not set', async () => {
  expect(await disclosedAs(`${MINIMAL}admin: { token: "" }\n`)).toMatchObject({ admin: { token: null } });
});

it('the credentials of a URL in a setting that expects none are not disclosed', async () => {
  const disclosed = await disclosedAs(`${MINIMAL}auth: { realm: "http://user:${MARK}@host/x" }\n`);
  expect(disclosed).toMatchObject({ auth: { realm: 'http://host/x' } });
});

it('of the file, what it sets is disclosed as written, in its order, and no secret or default', async () => {
  const yaml = `
workers: ${variable('WORKERS:-1')}
upstream: { urls: ["http://backend:3000"], credentials: replace, authorization: "${variable('AUTHORIZATION')}" }
usage_path: null
admin: { token: "", token_file: "" }
store: { url: "redis://gateway:${MARK}@127.0.0.1:6379/3" }
routes: [{ path: "/a/{id}", methods: [GET] }]
plans: { starter: { requests_per_hour: 5 } }
`;
  const { disclosedFile } = await load(yaml, { AUTHORIZATION: `Basic ${MARK}` });
  expect(JSON.stringify(disclosedFile)).toBe(
    JSON.stringify({
      workers: variable('WORKERS:-1'),
      upstream: { urls: ['http://backend:3000'], credentials: 'replace', authorization: '(secret)' },
      usage_path: null,
      admin: { token_file: '' },
      store: { url: 'redis://127.0.0.1:6379/3' },
      routes: [{ path: '/a/{id}', methods: ['GET'] }],
      plans: { starter: { requests_per_hour: 5 } },
    }),
  );
});

it('the text that hides a secret is refused as one, because everybody knows it', async () => {
  await expect(load(`${MINIMAL}admin: { token: (secret) }\n`)).rejects.toThrow(
    /admin\.token: is the text that hides a secret; write the secret/,
  );
});
