import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { configReference } from '../../scripts/config-reference.ts';
import { configChanges } from '../../src/config/config-changes.ts';
import { loadConfig } from '../../src/config/load.ts';
import { takesEffect } from '../../src/config/reloadable-settings.ts';
import { load, MINIMAL, withFolder } from './support.ts';

async function changesOf(before: string, after: string) {
  return configChanges(await load(MINIMAL + before), await load(MINIMAL + after));
}

const texts = async (before: string, after: string) => (await changesOf(before, after)).map(({ text }) => text);

describe('a change', () => {
  it.each([
    ['of a value', 'auth: { realm: a }', 'auth: { realm: b }', ['auth.realm: a → b']],
    ['from the default', '', 'listen: { port: 81 }', ['listen.port: 8080 → 81']],
    [
      'of a plan',
      'plans: { a: { requests_per_hour: 1000 }, b: { requests_per_hour: 1 } }',
      'plans: { a: { requests_per_hour: 800 }, c: { requests_per_hour: custom } }',
      ['plans.a.requests_per_hour: 1000 → 800', 'plan b is removed', 'plan c is added: { requests_per_hour: custom }'],
    ],
    [
      'of a list, as a whole',
      '',
      'listen: { trusted_proxies: [10.0.0.1] }',
      ['listen.trusted_proxies: [] → ["10.0.0.1"]'],
    ],
    ['to null', '', 'usage_path: null', ['usage_path: /api/v1/usage → none']],
    [
      'of a secret, without the secret',
      'admin: { token: one }',
      'admin: { token: two }',
      ['admin.token: another value'],
    ],
  ])('%s is described with the names in the file', async (_, before, after, expected) => {
    const told = await texts(before, after);
    expect(told).toHaveLength(expected.length);
    for (const [index, text] of expected.entries()) expect(told[index]).toContain(text);
  });

  it.each([
    [
      'a renamed plan',
      'plans: { business: { requests_per_hour: 9 } }',
      'plans: { premium: { requests_per_hour: 9, formerly: [business] } }',
      ['plan business is now premium'],
    ],
    [
      'a renamed plan whose limit changes',
      'plans: { business: { requests_per_hour: 9, formerly: [b2b], shadow: { requests_per_hour: 8 } } }',
      'plans: { premium: { requests_per_hour: 10, formerly: [b2b, business] } }',
      [
        'plan business is now premium',
        'plans.premium.requests_per_hour: 9 → 10',
        'plans.premium.shadow: { requests_per_hour: 8 } → none',
      ],
    ],
    [
      'plans that become one which there was',
      'plans: { a: { requests_per_hour: 1 }, b: { requests_per_hour: 2 }, c: { requests_per_hour: 3 } }',
      'plans: { c: { requests_per_hour: 3, formerly: [a, b] } }',
      ['plans a, b are now c'],
    ],
    [
      'a former name that was no plan',
      'plans: { a: { requests_per_hour: 1 } }',
      'plans: { a: { requests_per_hour: 1, formerly: [z] } }',
      ['plans.a.formerly: none → ["z"]'],
    ],
  ])(
    'of %s is described with the names of the plans, without members that are not set',
    async (_, before, after, expected) => {
      expect(await texts(before, after)).toEqual(expected);
      expect(JSON.stringify(await changesOf(before, after))).not.toContain('null');
    },
  );

  it('of how something is written is none', async () => {
    expect(await texts('', '# a comment\nlisten: { port: 8080 }')).toEqual([]);
    expect(await texts('plans: { a: { requests_per_hour: 1 } }', 'plans:\n  a:\n    requests_per_hour: 1')).toEqual([]);
  });

  it('of a password in a URL is described without the password', async () => {
    const changes = configChanges(
      await load('store: { url: "redis://:one@h" }\nupstream: { urls: ["http://b"] }'),
      await load('store: { url: "redis://:two@h" }\nupstream: { urls: ["http://b"] }'),
    );
    expect(changes).toMatchObject([{ key: 'store', takesEffect: 'restart' }]);
    expect(JSON.stringify(changes)).not.toMatch(/one|two/);
  });

  it('of what a file of its own holds is a change of the key that names it', async () => {
    await withFolder({ 'gateway.yaml': `${MINIMAL}admin: { token_file: token }`, token: 'one' }, async (folder) => {
      const read = () => loadConfig(join(folder, 'gateway.yaml'), {});
      const before = await read();
      await writeFile(join(folder, 'token'), 'two');
      expect(configChanges(before, await read())).toMatchObject([{ key: 'admin.token', takesEffect: 'reload' }]);
    });
  });
});

it.each([
  ['plans', 'reload'],
  ['plans.a.requests_per_hour', 'reload'],
  ['plans.<name>.shadow.requests_per_hour', 'reload'],
  ['routes[].path', 'reload'],
  ['admin', 'restart'],
  ['admin.token', 'reload'],
  ['admin.tokens', 'restart'],
  ['listen.port', 'restart'],
  ['store.url', 'restart'],
  ['a_key_of_tomorrow', 'restart'],
])('%s takes effect by a %s', (key, expected) => {
  expect(takesEffect(key)).toBe(expected);
});

test('the reference says of every key when it takes effect, but of sections whose keys differ', () => {
  const rows = new Map(configReference().map((row) => [row.path, row]));
  expect(rows.get('listen')?.takesEffect).toBe('');
  expect(rows.get('overrides')?.takesEffect).toBe('reload');
  for (const { path, type, takesEffect } of rows.values()) {
    if (type !== 'mapping') expect(takesEffect, path).toMatch(/^(reload|restart)$/);
  }
});
