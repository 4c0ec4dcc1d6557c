/** Settings that pass every check and yet fail in production: told by check-config, at the start and by a reload. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: what the configuration's own substitutions look like
import { networkInterfaces } from 'node:os';
import { describe, expect, test } from 'vitest';
import { rewrite } from '../control/reload/support.ts';
import { callAdmin } from '../support/admin.ts';
import { startSystem } from '../support/system.ts';
import { load, MINIMAL, withFolder } from './support.ts';

const DAY_MS = 86_400_000;
const ENV = { SHORT: '2short', LONG: 'a-token-of-32-characters-or-more', PW: 'pa$WORD', EMPTY: '' };

/** The warnings of the minimal file with these lines, from `line:` on. */
async function warningsOf(yaml: string, base = MINIMAL): Promise<readonly string[]> {
  const { warnings } = await load(base + yaml, ENV);
  return warnings.map((warning) => warning.replace(/^gateway\.yaml:(\d+): warning: /, '$1: '));
}

const upstream = (rest: string) => `store: { url: "redis://127.0.0.1" }\nupstream: { ${rest} }\n`;

describe('a setting that cannot work or is dangerous is warned of', () => {
  test.each([
    ['plans: {}', '3: plans: is empty'],
    ['limits: { header_bytes: 100 }', '3: limits.header_bytes: is below 1024 bytes'],
    ['limits: { header_count: 2 }', '3: limits.header_count: is below 10 headers'],
    ['limits: { target_bytes: 8 }', '3: limits.target_bytes: is below 256 bytes'],
    ['limits: { headers_timeout_ms: 10 }', '3: limits.headers_timeout_ms: is below 1000 ms'],
    ['limits: { response_stall_timeout_ms: 10 }', '3: limits.response_stall_timeout_ms: is below 1000 ms'],
    ['listen: { keep_alive_timeout_ms: 5 }', '3: listen.keep_alive_timeout_ms: is below 1000 ms'],
    ['listen: { trusted_proxies: [10.0.0.1, 0.0.0.0/0] }', '3: listen.trusted_proxies[1]: includes public addresses'],
    ['listen: { trusted_proxies: ["::/0"] }', '3: listen.trusted_proxies[0]: includes public addresses'],
    ['listen: { trusted_proxies: [0.0.0.0/1] }', '3: listen.trusted_proxies[0]: includes public addresses'],
    ['listen: { trusted_proxies: ["::FFFF:0:0/96"] }', '3: listen.trusted_proxies[0]: includes public addresses'],
    ['listen: { trust_forwarded_host: true }', '3: listen.trust_forwarded_host: has no effect'],
    ['admin: {}', '3: admin.token: is not set, nor is admin.jwt'],
    ['admin:\n  token: ${EMPTY}', '4: admin.token: is not set, nor is admin.jwt'],
    ['admin: { token: 123456789012345 }', '3: admin.token: is shorter than 16 characters'],
    ['admin:\n  token: ${SHORT}', '4: admin.token: is shorter than 16 characters'],
    [
      'admin: { token: a-token-of-32-characters }\nportal: { public_url: "http://keys.example.com" }',
      '4: portal.public_url: is http://: sessions and new keys cross the network unencrypted',
    ],
    [
      'admin: { token: a-token-of-32-characters }\nportal: { public_url: "https://keys.example.com", accent_color: "#d32f2f" }',
      '4: portal.accent_color: is close to the color of errors',
    ],
    ['auth: { cache_seconds: 86400 }', '3: auth.cache_seconds: is above 3600 seconds'],
    ['auth: { stale_if_error_seconds: 100000 }', '3: auth.stale_if_error_seconds: is above 86400 seconds'],
    [
      'routes:\n  - { path: "/{all...}", methods: [OPTIONS, GET], key: none }\naliases: {}',
      '4: routes[0].key: opens every path of the backend that no other route has to anyone',
    ],
    [
      'routes: [{ path: /a, methods: [GET], units: 1 }, { path: /b, methods: [GET], units: 600 }]\nplans:\n' +
        '  small: { requests_per_hour: 599 }\n  exact: { requests_per_hour: 600 }\n  own: { requests_per_hour: custom }\naliases: {}',
      '3: routes[1].units: is above requests_per_hour of small: 403 cost_exceeds_limit',
    ],
    [
      'routes: [{ path: /a, methods: [GET], units: 600 }]\nplans:\n' +
        '  small: { requests_per_hour: 600, period: { per: day, requests: 599 } }\n' +
        '  exact: { requests_per_hour: 600, period: { per: day, requests: 600 } }\n' +
        '  beyond: { requests_per_hour: 600, period: { per: day, requests: 599, beyond: allow } }\naliases: {}',
      '3: routes[0].units: is above period.requests of small: 403 cost_exceeds_limit',
    ],
    [
      `routes: [{ path: /a, methods: [GET], sunset_at: ${new Date(Date.now() + 13 * DAY_MS).toISOString()} }]\naliases: {}`,
      '3: routes[0].sunset_at: is less than two weeks away: from then on requests of this route get 410',
    ],
    [
      'routes: [{ path: /a, methods: [GET], sunset_at: 2026-01-01T00:00:00Z }]\naliases: {}',
      '3: routes[0].sunset_at: has passed: requests of this route get 410',
    ],
    ['shutdown: { drain_ms: 0 }', '3: shutdown.drain_ms: is below 1000 ms'],
    ['auth: { realm: $REALM }', '3: auth.realm: contains "$" and a name without braces'],
    ['auth:\n  realm: api.$DOMAIN.example', '4: auth.realm: contains "$" and a name without braces'],
  ])('%s', async (yaml, warning) => {
    expect(await warningsOf(yaml)).toEqual([expect.stringContaining(warning)]);
  });

  test.each([
    ['urls: ["http://backend:0"]', 'upstream.urls[0]: has port 0'],
    [
      'urls: ["http://backend", "http://127.0.0.1:8080/base"]',
      "upstream.urls[1]: is the gateway's own listener listen",
    ],
    ['urls: ["http://localhost:8081"]', "upstream.urls[0]: is the gateway's own listener ops"],
    ['urls: ["http://[::1]:8080"]', "upstream.urls[0]: is the gateway's own listener listen"],
    ['urls: ["http://0.0.0.0:8080"]', "upstream.urls[0]: is the gateway's own listener listen"],
    [`urls: ["http://${ownAddress()}:8080"]`, "upstream.urls[0]: is the gateway's own listener listen"],
    ['urls: ["http://b"], connect_timeout_ms: 1', 'upstream.connect_timeout_ms: is below 10 ms'],
    ['urls: ["http://b"], response_timeout_ms: 5', 'upstream.response_timeout_ms: is below 100 ms'],
    [
      'urls: ["http://b"], health_check: { path: /, interval_ms: 10 }',
      'upstream.health_check.interval_ms: is below 1000 ms',
    ],
  ])('upstream: %s', async (yaml, warning) => {
    expect(await warningsOf('', upstream(yaml))).toEqual([expect.stringContaining(`2: ${warning}`)]);
  });

  test.each([
    ['timeout_ms: 2', 'store.timeout_ms: is below 10 ms'],
    ['timeout_ms: 60000', 'store.timeout_ms: is above 2000 ms'],
  ])('store: %s', async (yaml, warning) => {
    const base = `store: { url: "redis://127.0.0.1", ${yaml} }\nupstream: { urls: ["http://b"] }\n`;
    expect(await warningsOf('', base)).toEqual([expect.stringContaining(`1: ${warning}`)]);
  });

  test('admin on a loopback address of its own is found as upstream too', async () => {
    const admin = `admin: { host: 127.0.0.1, port: 9000, token: "\${LONG}" }\n`;
    const found = await warningsOf(admin, upstream('urls: ["http://localhost:9000"]'));
    expect(found).toEqual(["2: upstream.urls[0]: is the gateway's own listener admin: name the backend"]);
  });

  test('a short token in a file is warned of where the file is named', async () => {
    await withFolder({ token: 'short\n' }, async (folder) => {
      const [warning] = await warningsOf(`admin:\n  token_file: ${folder}/token`);
      expect(warning).toMatch(/^4: admin\.token_file: is shorter than 16 characters/);
    });
  });
});

test.each([
  ['a minimal file', ''],
  ['private proxies', 'listen: { trusted_proxies: [10.0.0.0/8, 192.168.0.1, "fc00::/7", "::ffff:10.0.0.0/104"] }'],
  ['other listeners on loopback', 'listen: { host: 127.0.0.1, port: 8080 }\nops: { host: 127.0.0.2, port: 3000 }'],
  ['a good token', 'admin: { token: "${LONG}" }'],
  ['a JWT in place of a token', 'admin: { jwt: { jwks_url: https://a/b, issuer: a, audience: b } }'],
  ['a variable whose value has a dollar sign', 'auth: { realm: "${PW}" }'],
  ['a dollar sign that names no variable', 'auth: { realm: "$5 pa$$WORD a$WORD $x $ $${NAME}" }'],
])('no warning: %s', async (_, yaml) => {
  expect(await warningsOf(yaml)).toEqual([]);
});

test('no warning repeats a value, which may be secret', async () => {
  const { warnings } = await load(
    'store: { url: "redis://:$SECRET@h" }\nupstream: { urls: ["http://b:0"] }\nadmin: { token: $SECRET }',
  );
  expect(warnings).toHaveLength(4);
  expect(warnings.join()).not.toContain('SECRET');
});

test('the start logs each warning once; a reload logs those of the new file, and its response has them', async () => {
  const { gateway } = await startSystem({ config: { limits: { header_bytes: 1000, header_count: 9 } } });
  const warned = () => gateway.logs.flatMap(({ msg }) => /warning: (limits\.\w+|plans)/.exec(String(msg))?.[1] ?? []);
  expect(warned()).toEqual(['limits.header_bytes', 'limits.header_count']);
  await rewrite(gateway, { limits: { header_bytes: 1000, header_count: 50 } });
  const { body } = await callAdmin(gateway, '/admin/v1/config/reload', { method: 'POST' });
  expect(body).toMatchObject({
    result: expect.stringMatching(/applied|unchanged/),
    warnings: [expect.stringContaining('warning: limits.header_bytes: is below 1024 bytes')],
  });
  expect(warned()).toEqual(['limits.header_bytes', 'limits.header_count', 'limits.header_bytes']);
});

/** An address of this machine that is not a loopback address, if there is one. */
function ownAddress(): string {
  const addresses = Object.values(networkInterfaces()).flatMap((all = []) => all);
  return addresses.find(({ internal, family }) => !internal && family === 'IPv4')?.address ?? '127.0.0.1';
}
