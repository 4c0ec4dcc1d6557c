/**
 * A page of another site, open in the browser of somebody who is logged in, sends a form or a fetch to the console. The
 * browser may add the session cookie (SameSite=Strict does not cover other hosts of the same site, nor other ports). Or
 * the page frames the console and has its user click there; or its domain resolves to the listener's address.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startAdmin, type TestAdmin, TOKEN } from '../control/admin/support.ts';
import { logIn, OWN_PAGE, postLogin, type SessionHeaders, send } from './support.ts';

let admin: TestAdmin;
let session: SessionHeaders;
beforeAll(async () => {
  admin = await startAdmin();
  session = await logIn(admin.origin);
});
afterAll(() => admin.close());

const JSON_TYPE = { 'content-type': 'application/json' };
let customers = 0;
/** Creates a customer with the session cookie and these headers. */
function create(headers: Record<string, string>, own = session) {
  customers += 1;
  const body = JSON.stringify({ id: `customer-${customers}`, plan: 'starter' });
  return send(admin.origin, 'POST', '/admin/v1/customers', { ...own, ...headers }, body);
}

describe('a change with the session cookie is made', () => {
  it('if Sec-Fetch-Site is same-origin', async () => {
    expect((await create({ ...JSON_TYPE, 'sec-fetch-site': 'same-origin' })).status).toBe(201);
  });

  it('if there is no Sec-Fetch-Site and Origin is the listener’s', async () => {
    expect((await create({ ...JSON_TYPE, origin: admin.origin })).status).toBe(201);
  });

  it('if it is the preview of a YAML file', async () => {
    const headers = { ...session, 'sec-fetch-site': 'same-origin', 'content-type': 'application/yaml' };
    const { status } = await send(admin.origin, 'POST', '/admin/v1/config/preview', headers, 'listen: {}');
    expect(status).not.toBe(403);
    expect(status).not.toBe(415);
  });
});

describe('a change with the session cookie is refused, and nothing changes,', () => {
  const cases: [string, Record<string, string>][] = [
    ['if a fetch of another site sends it', { 'sec-fetch-site': 'cross-site', origin: 'https://attacker.example' }],
    ['if a fetch of another host of the site sends it', { 'sec-fetch-site': 'same-site' }],
    ['if Origin is ours but Sec-Fetch-Site is not', { 'sec-fetch-site': 'cross-site', origin: 'OWN' }],
    ['if no page sends it', { 'sec-fetch-site': 'none' }],
    ['if Sec-Fetch-Site is there twice', { 'sec-fetch-site': 'same-origin, same-origin' }],
    ['if there is neither Sec-Fetch-Site nor Origin', {}],
    ['if Origin is another', { origin: 'http://attacker.example' }],
    ['if Origin is ours but for the port', { origin: 'http://127.0.0.1:1' }],
    ['if Origin is ours but for the scheme', { origin: 'OWN-https' }],
    ['if Origin only begins with ours', { origin: 'OWN.attacker.example' }],
    ['if Origin is opaque', { origin: 'null' }],
  ];
  it.each(cases)('%s', async (_why, headers) => {
    const origin = headers.origin?.replace('OWN-https', admin.origin.replace('http:', 'https:'));
    const own = origin === undefined ? {} : { origin: origin.replace('OWN', admin.origin) };
    const { status, body } = await create({ ...JSON_TYPE, ...headers, ...own }, await logIn(admin.origin));
    expect({ status, code: body.code }).toEqual({ status: 403, code: 'forbidden' });
    expect(await admin.records.findCustomerRecord(`customer-${customers}`)).toBeUndefined();
  });

  it.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    '',
  ])('if a form could have sent its content type "%s"', async (type) => {
    const headers = { 'sec-fetch-site': 'same-origin', ...(type !== '' && { 'content-type': type }) };
    const { status, body } = await create(headers);
    expect({ status, code: body.code }).toEqual({ status: 415, code: 'unsupported_media_type' });
    expect(await admin.records.findCustomerRecord(`customer-${customers}`)).toBeUndefined();
  });

  it('if it has no body and no content type', async () => {
    const headers = { ...session, 'sec-fetch-site': 'same-origin' };
    expect((await send(admin.origin, 'POST', '/admin/v1/config/reload', headers)).status).toBe(415);
    expect((await send(admin.origin, 'DELETE', '/admin/v1/customers/acme', headers)).status).toBe(415);
  });

  it('if a Secure cookie comes with an Origin of http', async () => {
    const secure = await logIn(admin.origin, TOKEN, { origin: admin.origin.replace('http:', 'https:') });
    expect((await create({ ...JSON_TYPE, origin: admin.origin }, secure)).status).toBe(403);
    expect((await create({ ...JSON_TYPE, origin: admin.origin.replace('http:', 'https:') }, secure)).status).toBe(201);
  });
});

describe('a read with the session cookie', () => {
  it.each([
    [200, { 'sec-fetch-site': 'same-origin' }],
    [200, { 'sec-fetch-site': 'none' }],
    [200, {}],
    [403, { 'sec-fetch-site': 'same-site' }],
    [403, { 'sec-fetch-site': 'cross-site' }],
    [403, { origin: 'http://attacker.example' }],
  ])('is %i with %j', async (status, headers) => {
    const response = await send(admin.origin, 'GET', '/admin/v1/customers', { ...session, ...headers });
    expect(response.status).toBe(status);
    expect(response.headers).not.toHaveProperty('access-control-allow-origin');
  });
});

describe('a login or logout', () => {
  it.each([
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { origin: 'http://attacker.example' },
    { origin: 'null' },
  ])('by a page of another origin (%j) is refused', async (stated) => {
    const body = JSON.stringify({ token: TOKEN });
    for (const method of ['POST', 'DELETE']) {
      const { status, headers } = await send(
        admin.origin,
        method,
        '/console/session',
        { ...JSON_TYPE, ...stated },
        body,
      );
      expect({ method, status }).toEqual({ method, status: 403 });
      expect(headers).not.toHaveProperty('set-cookie');
    }
  });

  it('by a form is refused', async () => {
    const { status } = await postLogin(admin.origin, TOKEN, { 'content-type': 'text/plain' });
    expect(status).toBe(415);
  });
});

it('a request with an Authorization header is treated as if there were no console', async () => {
  const headers = { ...JSON_TYPE, authorization: `Bearer ${TOKEN}`, 'sec-fetch-site': 'cross-site', origin: 'null' };
  expect((await create(headers, { ...session, cookie: 'tollgate_session=garbage' })).status).toBe(201);
});

it.each(['/console', '/console/customers', '/console/session', '/admin/v1/customers'])(
  '%s by a Host that is not the listener’s is 421, with and without a session',
  async (path) => {
    for (const sent of [{}, session]) {
      const response = await send(admin.origin, 'GET', path, { ...sent, host: 'attacker.example' });
      expect({ status: response.status, code: response.body.code }).toEqual({
        status: 421,
        code: 'misdirected_request',
      });
    }
  },
);

const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

it.each([
  ['GET', '/console', 200],
  ['GET', '/console/', 200],
  ['GET', '/console/customers/acme', 200],
  ['HEAD', '/console', 200],
  ['POST', '/console', 405],
  ['GET', '/console/assets/none/main.js', 404],
  ['GET', '/console/session', 200],
  ['PUT', '/console/session', 405],
  ['GET', '/admin/v1/customers', 200],
  ['GET', '/admin/v1/nothing', 404],
  ['GET', '/status', 200],
])(
  '%s %s (%i) can be neither framed nor sniffed, runs only own scripts, and is not stored',
  async (method, path, status) => {
    const response = await send(admin.origin, method, path, { ...session, ...OWN_PAGE });
    expect(response.status).toBe(status);
    expect(response.headers).toMatchObject({
      'content-security-policy': CSP,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cache-control': 'no-store',
    });
  },
);
