import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { STORES } from '../../support/gateway.ts';
import { startSystem } from '../../support/system.ts';
import { AUDIENCE, claimsAt, createIssuerKey, ISSUER, sign, startIssuer } from './issuer.ts';

const KEY = await createIssuerKey('key-1', 'EdDSA');

describe.each(STORES)('a gateway over $name with admin.jwt', (store) => {
  it('lets JWTs of its issuer read or write by their scopes, and records the subject in the audit', async () => {
    const issuer = await startIssuer(KEY);
    const jwt = { jwks_url: issuer.url, issuer: ISSUER, audience: AUDIENCE };
    const { gateway } = await startSystem({ store, config: { admin: { jwt } } });
    const tokenFor = (scope: string) => sign(KEY, claimsAt(systemClock.nowMs(), { scope }));
    const [reader, writer] = [await tokenFor('tollgate:read'), await tokenFor('tollgate:write')];
    const statusFor = async (token: string, init: RequestInit = {}) => {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      return (await fetch(`${gateway.admin}/admin/v1/customers`, { ...init, headers })).status;
    };
    const creation = { method: 'POST', body: JSON.stringify({ id: 'new', plan: 'starter' }) };

    expect(await statusFor(reader)).toBe(200);
    expect(await statusFor(reader, creation)).toBe(403);
    expect(await statusFor(writer, creation)).toBe(201);
    expect(await statusFor(writer)).toBe(200);

    const headers = { authorization: `Bearer ${reader}` };
    const audit = (await (await fetch(`${gateway.admin}/admin/v1/audit?limit=1`, { headers })).json()) as object;
    expect(audit).toMatchObject({ items: [{ actor: 'jwt:ops@example', action: 'customer.create', customer: 'new' }] });
    expect(JSON.stringify(gateway.logs)).not.toContain(reader.split('.')[2]);
  });
});
