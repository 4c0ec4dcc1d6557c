/**
 * A JWT that may only read saw the URLs of webhooks with their paths. At many services, the path is the secret: whoever has
 * it may post messages in the operator's or a customer's name.
 */
import { expect, test } from 'vitest';
import { withWebhookOrigins } from '../../src/control/frame/webhook-origins.ts';
import { AUDIENCE, claimsAt, createIssuerKey, ISSUER, sign, startIssuer } from '../control/admin/issuer.ts';
import { bearer, callAdmin } from '../support/admin.ts';
import { startSystem } from '../support/system.ts';

const SECRET = `whsec_${Buffer.alloc(32).toString('base64')}`;
const MARK = 'T0P-S3CRET-PATH';

test('a JWT that may only read gets webhook URLs without their paths, in every document', async () => {
  const key = await createIssuerKey('k');
  const issuer = await startIssuer(key);
  const url = `http://127.0.0.1:9/services/${MARK}?token=${MARK}`;
  const { gateway } = await startSystem({
    config: {
      admin: { jwt: { jwks_url: issuer.url, issuer: ISSUER, audience: AUDIENCE } },
      notices: { endpoints: [{ url, secret: SECRET, allow_private: true }] },
    },
  });
  const customerUrl = `https://hooks.example/${MARK}`;
  const body = { id: 'hooked', plan: 'starter', notify_url: customerUrl };
  expect((await callAdmin(gateway, '/admin/v1/customers', { body })).status).toBe(201);
  await callAdmin(gateway, '/admin/v1/customers/hooked', {
    method: 'PATCH',
    body: { notify_url: `${customerUrl}/2` },
  });

  const token = await sign(key, claimsAt(Date.now()));
  const read = async (path: string, headers = bearer(token)) => {
    const response = await fetch(`${gateway.admin}${path}`, { headers });
    expect([path, response.status]).toEqual([path, 200]);
    return await response.text();
  };
  const paths = [
    '/admin/v1/customers/hooked',
    '/admin/v1/customers',
    '/admin/v1/customers/hooked/explain',
    '/admin/v1/config',
    '/admin/v1/config/file',
    '/admin/v1/audit',
    '/admin/v1/notices',
    '/status',
  ];
  for (const path of paths) expect([path, await read(path)]).not.toEqual([path, expect.stringContaining(MARK)]);
  expect(JSON.parse(await read('/admin/v1/customers/hooked'))).toMatchObject({ notify_url: 'https://hooks.example' });
  expect(JSON.parse(await read('/admin/v1/config')).notices.endpoints).toMatchObject([
    { url: 'http://127.0.0.1:9', secret: '(secret)', allow_private: true },
  ]);
  // The admin token may write, and sees them whole.
  const config = await callAdmin(gateway, '/admin/v1/config');
  expect(config.body.notices.endpoints[0].url).toBe(url);
});

test.each([
  [`https://user:${MARK}@hooks.example:8443/${MARK}`, 'https://hooks.example:8443'],
  ['notify_url', 'notify_url'],
  [`hooks.example/${MARK}`, '(secret)'],
  [null, null],
])('of an endpoint %s, a reader gets %s', (endpoint, shown) => {
  const document = { items: [{ id: MARK, deliveries: [{ endpoint }], details: { endpoint } }] };
  expect(withWebhookOrigins(document)).toEqual({
    items: [{ id: MARK, deliveries: [{ endpoint: shown }], details: { endpoint: shown } }],
  });
});
