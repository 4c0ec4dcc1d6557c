/** The sections `upstream` and `upstreams`, and what routes say about them. */

import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { takesEffect } from '../../src/config/reloadable-settings.ts';
import { load, problemsOf, withFolder } from './support.ts';

const STORE = 'store: { url: "sqlite:a" }\n';
const DEFAULT = 'upstream: { urls: ["http://one:3000"] }\n';
const TWO = `${STORE}${DEFAULT}upstreams:\n  billing: { urls: ["http://billing:4000"] }\n`;
const route = (more: string) => `routes:\n  - { path: /a, methods: [GET], ${more} }\n`;

describe('backends', () => {
  test('are those of upstream and upstreams, and a route names one or the default', async () => {
    const config = await load(`${TWO}${route('upstream: billing')}  - { path: /b, methods: [GET] }\n`);
    expect([...config.backends].map(([name, { urls, maxConnections }]) => [name, urls, maxConnections])).toEqual([
      ['default', ['http://one:3000'], 256],
      ['billing', ['http://billing:4000'], 256],
    ]);
    expect(config.routes.map(({ upstream }) => upstream)).toEqual(['billing', 'default']);
    expect(config.warnings).toEqual([]);
  });

  test('do without the default if every route names another', async () => {
    const config = await load(`${STORE}upstreams: { b: { urls: ["http://b"] } }\n${route('upstream: b')}`);
    expect([...config.backends.keys()]).toEqual(['b']);
  });

  test('are applied by a reload, with all of their settings', () => {
    for (const key of ['upstream', 'upstream.urls', 'upstream.tls.ca_file', 'upstreams.billing.max_connections']) {
      expect(takesEffect(key)).toBe('reload');
    }
  });

  test('have secrets of their own, which the hash and the shown configuration hide', async () => {
    const yaml = `${STORE}upstreams:\n  b: { urls: ["http://b"], credentials: replace, authorization_file: secret }\n`;
    await withFolder({ 'gateway.yaml': yaml + route('upstream: b'), secret: 'Basic YTpi\n' }, async (folder) => {
      const config = await loadConfig(join(folder, 'gateway.yaml'), {});
      expect(config.backends.get('b')?.authorization).toBe('Basic YTpi');
    });
    const inline = (secret: string) => load(yaml.replace('_file: secret', `: "${secret}"`) + route('upstream: b'));
    const [one, two] = [await inline('Basic one'), await inline('Basic two')];
    expect(one.hash).toBe(two.hash);
    expect(JSON.stringify([one.disclosed, one.disclosedFile])).not.toContain('Basic');
  });
});

describe('a problem', () => {
  test.each([
    [
      'an unknown name',
      TWO + route('upstream: bilings'),
      'gateway.yaml:6: routes[0].upstream: must be default or a name in upstreams (billing)',
    ],
    [
      'a name without upstreams',
      STORE + DEFAULT + route('upstream: billing'),
      'gateway.yaml:4: routes[0].upstream: must be default or a name in upstreams, which has none',
    ],
    [
      'a default that is missing',
      `${STORE}upstreams: { b: { urls: ["http://b"] } }\n${route('scope: x')}`,
      'gateway.yaml:1: upstream: is required, unless every route names a backend of upstreams, or there is a section check',
    ],
    [
      'the name default',
      `${STORE}${DEFAULT}upstreams:\n  default: { urls: ["http://b"] }\n`,
      'gateway.yaml:4: upstreams.default: the name must be 1 to 32 characters of a-z 0-9 _ -, begin with a letter or digit, and not be default',
    ],
    [
      'a name in capitals',
      `${STORE}${DEFAULT}upstreams:\n  Billing: { urls: ["http://b"] }\n`,
      'gateway.yaml:4: upstreams.Billing: the name must be 1 to 32 characters of a-z 0-9 _ -, begin with a letter or digit, and not be default',
    ],
    [
      'a URL twice',
      TWO.replace('4000"', '4000", "http://billing:4000/"'),
      'gateway.yaml:4: upstreams.billing.urls[1]: is the same as urls[0]; keep one',
    ],
    [
      'timeouts of a backend',
      TWO.replace('4000"]', '4000"], total_timeout_ms: 5'),
      'gateway.yaml:4: upstreams.billing.total_timeout_ms: must not be below response_timeout_ms',
    ],
    [
      'timeouts of a route and its backend',
      TWO + route('upstream: billing, total_timeout_ms: 20000'),
      'gateway.yaml:6: routes[0].total_timeout_ms: must not be below response_timeout_ms',
    ],
    [
      'a route above the total of its backend',
      TWO.replace('4000"]', '4000"], total_timeout_ms: 40000') + route('upstream: billing, response_timeout_ms: 50000'),
      'gateway.yaml:6: routes[0].response_timeout_ms: must not be above total_timeout_ms',
    ],
    [
      'a secret that is missing',
      TWO.replace('4000"]', '4000"], credentials: replace'),
      'gateway.yaml:4: upstreams.billing.authorization: is required, here or by authorization_file, with credentials: replace',
    ],
    [
      'a certificate without TLS',
      TWO.replace('4000"]', '4000"], tls: {}'),
      'gateway.yaml:4: upstreams.billing.tls: is used only with an https:// URL in urls; remove it or change a URL',
    ],
  ])('is found: %s', async (_what, yaml, problem) => {
    expect(await problemsOf(yaml)).toEqual([problem]);
  });

  test('with an assertion: a unix socket without an audience', async () => {
    const yaml = `${TWO.replace('"http://billing:4000"', '"unix:/run/b.sock"')}identity: { assertion: { signing_key_file: none } }\n`;
    const problem =
      'gateway.yaml:4: upstreams.billing.audience: is required, here or as identity.assertion.audience: the first of urls is a unix socket, which has no origin';
    expect(await problemsOf(yaml)).toContain(problem);
  });
});

describe('a warning', () => {
  test.each([
    [
      'a backend that no route names',
      TWO,
      'gateway.yaml:4: warning: upstreams.billing: is not used: no route names this backend',
    ],
    [
      'a default that no route names',
      TWO + route('upstream: billing'),
      'gateway.yaml:2: warning: upstream: is not used: no route names this backend',
    ],
    [
      'the gateway itself',
      `${TWO.replace('billing:4000', '127.0.0.1:8080')}${route('upstream: billing')}  - { path: /b, methods: [GET] }\n`,
      "gateway.yaml:4: warning: upstreams.billing.urls[0]: is the gateway's own listener listen: name the backend",
    ],
    [
      'a timeout of a route',
      `${STORE}${DEFAULT}${route('response_timeout_ms: 5')}`,
      'gateway.yaml:4: warning: routes[0].response_timeout_ms: is below 100 ms: a healthy backend often takes longer, and clients get 504',
    ],
  ])('is given: %s', async (_what, yaml, warning) => {
    expect((await load(yaml)).warnings).toContain(warning);
  });
});
