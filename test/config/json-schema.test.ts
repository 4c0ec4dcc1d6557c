/** Editors check the configuration file by this schema: it must refuse what is misspelt, and nothing that the gateway takes. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: what the configuration's own substitutions look like
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { Ajv } from 'ajv';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { load, MINIMAL, problemsOf } from './support.ts';

const REPOSITORY = resolve(import.meta.dirname, '../..');
const SCHEMA = JSON.parse(await readFile(resolve(REPOSITORY, 'config/gateway.schema.json'), 'utf8'));
const validate = new Ajv({ strict: true, allowUnionTypes: true, allErrors: true }).compile(SCHEMA);

const VARIABLES = `
listen:
  port: \${PORT}
workers: \${COUNT}
identity:
  headers: \${FLAG}
logging:
  level: \${WORD}
routes:
  - path: /a
    methods:
      - \${METHOD}
plans:
  a:
    requests_per_hour: 1\${COUNT:-0}00
aliases: {}`;

/** Where the schema refuses a file, and why. */
function faultsOf(yaml: string): string[] {
  validate(parse(yaml));
  return (validate.errors ?? []).map(({ instancePath, keyword }) => `${instancePath} ${keyword}`);
}

test.each(['config/gateway.yaml', 'config/any-backend.yaml', 'deploy/compose/gateway/gateway.yaml'])(
  '%s is valid',
  async (file) => {
    expect(faultsOf(await readFile(resolve(REPOSITORY, file), 'utf8'))).toEqual([]);
  },
);

test.each(['gateway.yaml', 'any-backend.yaml'])('config/%s names the schema for editors', async (name) => {
  const [first] = (await readFile(resolve(REPOSITORY, 'config', name), 'utf8')).split('\n');
  expect(first).toBe('# yaml-language-server: $schema=gateway.schema.json');
});

test.each([
  ['nothing that may be left out', ''],
  ['variables for numbers, flags, words and lists of them', VARIABLES],
  [
    'numbers where text is wanted',
    'overrides: { 123: { requests_per_hour: 5 } }\nauth: { realm: 5 }\nadmin: { token: 17 }',
  ],
  ['null where that switches off', 'usage_path: null'],
  ['alternatives', 'workers: auto\nplans: { a: { requests_per_hour: custom, formerly: [b] } }'],
])('valid for the gateway and for editors: %s', async (_, yaml) => {
  await load(MINIMAL + yaml, { PORT: '1', FLAG: 'true', WORD: 'info', COUNT: '2', METHOD: 'GET' });
  expect(faultsOf(MINIMAL + yaml)).toEqual([]);
});

test.each([
  ['a misspelt key', 'listen: { prot: 8080 }', '/listen additionalProperties'],
  ['a misspelt section', 'listn: {}', ' additionalProperties'],
  ['a misspelt key of a plan', 'plans: { a: { request_per_hour: 1 } }', '/plans/a required'],
  ['text for a number', 'listen: { port: http }', '/listen/port anyOf'],
  ['a number out of range', 'listen: { port: 65536 }', '/listen/port anyOf'],
  ['a number for a flag', 'identity: { headers: 1 }', '/identity/headers anyOf'],
  ['an unknown word', 'logging: { level: loud }', '/logging/level anyOf'],
  ['an unknown word in a list', 'routes: [{ path: /a, methods: [PAINT] }]', '/routes/0/methods/0 anyOf'],
  ['a bare variable for a number', 'listen: { port: $PORT }', '/listen/port anyOf'],
  ['an empty list', 'routes: []', '/routes minItems'],
  ['a word for a list', 'listen: { trusted_proxies: 10.0.0.1 }', '/listen/trusted_proxies type'],
  ['a list for a mapping', 'overrides: []', '/overrides type'],
  ['a mapping for text', 'auth: { realm: {} }', '/auth/realm type'],
  ['nothing for a section', 'plans:', '/plans type'],
  ['a section without what it needs', 'identity: { assertion: {} }', '/identity/assertion required'],
])('invalid for the gateway and for editors: %s', async (_, yaml, fault) => {
  expect(await problemsOf(MINIMAL + yaml)).not.toEqual([]);
  expect(faultsOf(MINIMAL + yaml)).toContain(fault);
});

test('a backend without urls is invalid', () => {
  expect(faultsOf('upstreams: { billing: {} }')).toEqual(['/upstreams/billing required']);
});
