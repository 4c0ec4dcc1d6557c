/** The section `check`: what it needs, what it warns of, and what a reload applies. */
import { writeFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { load, problemsOf } from '../config/support.ts';
import { bearer } from '../support/admin.ts';
import { ask, createLimitedKey, startCheckSystem } from './support.ts';

const STORE = 'store: { url: "redis://127.0.0.1" }\n';
const KEY = 'token: a-token-of-32-characters';

describe('a section check', () => {
  test.each([
    ['', 'upstream: is required, unless every route names a backend of upstreams, or there is a section check'],
    ['check: { host: 0.0.0.0 }', 'check.token: is required, here or by token_file, unless check.host is a loopback'],
    ['check: { host: 0.0.0.0, token: short }', 'check.token: must have at least 16 characters unless check.host is'],
    ['check: { token: "a b" }', 'check.token: must be printable ASCII without spaces'],
    ['check: { port: 8081 , host: 0.0.0.0, token: a-token-of-32-characters}', 'check.port: is the port of ops too'],
    [
      'check: {}\nidentity: { assertion: { signing_key_file: /none } }',
      'identity.assertion.audience: is required with check',
    ],
  ])('%s is refused', async (yaml, problem) => {
    expect(await problemsOf(STORE + yaml)).toContainEqual(expect.stringContaining(problem));
  });

  test.each([
    [`check: { ${KEY} }`, 'check.trusted_proxies: is empty, so no client address is known'],
    ['check: { token: short, trusted_proxies: [127.0.0.1] }', 'check.token: is shorter than 16 characters'],
    [`check: { ${KEY}, trusted_proxies: [0.0.0.0/0] }`, 'check.trusted_proxies[0]: includes public addresses'],
    [`upstream: { urls: ["http://b"] }\ncheck: { trusted_proxies: [127.0.0.1] }`, 'upstream: counts only for requests'],
    [
      `plans: { a: { requests_per_hour: 1, max_concurrent: 2 } }\ncheck: { trusted_proxies: [127.0.0.1] }`,
      'plans.a.max_concurrent: counts only',
    ],
    [
      `routes: [{ path: /a, methods: [POST], max_body_bytes: 9 }]\ncheck: { trusted_proxies: [127.0.0.1] }`,
      'routes[0].max_body_bytes: counts only',
    ],
    [
      `upstream: { urls: ["http://127.0.0.1:8084"] }\ncheck: { trusted_proxies: [127.0.0.1] }`,
      "is the gateway's own listener check",
    ],
  ])('%s is warned of', async (yaml, warning) => {
    expect((await load(STORE + yaml)).warnings).toContainEqual(expect.stringContaining(warning));
  });

  test('takes the proxies of the public listener unless it names its own, and discloses no token', async () => {
    const config = await load(`${STORE}listen: { trusted_proxies: [10.0.0.1] }\ncheck: { ${KEY} }`);
    expect(config.check?.trustedProxies).toEqual(['10.0.0.1']);
    expect(JSON.stringify([config.disclosed, config.disclosedFile])).not.toContain('a-token-of');
    // No public listener, so its default port is free.
    expect((await load(`${STORE}check: { port: 8080 }`)).check?.port).toBe(8080);
  });
});

test('a reload applies token and proxies; the listener itself needs a restart', async () => {
  const { gateway } = await startCheckSystem();
  const { check = {}, ...others } = gateway.sections;
  const restricted = await createLimitedKey(gateway, { allowed_addresses: ['203.0.113.9'] });
  const status = async (token: string) => {
    const headers = { ...bearer(restricted), 'X-Forwarded-For': '203.0.113.9' };
    return (await ask(gateway, '/ext-authz/v1/open', { headers, token })).status;
  };
  const rewrite = async (sections: object) => {
    await writeFile(gateway.file, stringify(sections));
    const { result } = await gateway.reload('signal');
    // The file is watched, too: it may have been applied before.
    return result === 'unchanged' ? 'applied' : result;
  };
  expect(await status(String(check.token))).toBe(200);
  expect(await rewrite({ ...others, check: { ...check, token: 'another-check-token' } })).toBe('applied');
  expect([await status(String(check.token)), await status('another-check-token')]).toEqual([500, 200]);
  const unnamed = { ...check, token: 'another-check-token', trusted_proxies: [] };
  expect(await rewrite({ ...others, check: unnamed })).toBe('applied');
  expect(await status('another-check-token')).toBe(403);
  expect(await rewrite({ ...others, check: { ...unnamed, port: 1 } })).toBe('restart_required');
  const upstream = { urls: ['http://127.0.0.1:1'] };
  expect(await rewrite({ ...others, check: unnamed, upstream })).toBe('restart_required');
  expect(await rewrite({ ...others, upstream })).toBe('restart_required');
  expect(await status('another-check-token')).toBe(403);
});
