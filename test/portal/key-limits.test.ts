/** The limit of a key in the admin API and the portal, over each store. */
import { expect, it } from 'vitest';
import { send } from '../console/support.ts';
import { bearer, callAdmin } from '../support/admin.ts';
import { openSession, overEachStore } from './support.ts';

const PATIENCE = { timeout: 30_000, interval: 50 };

overEachStore('the limit of a key', (system) => {
  const admin = (method: string, path: string, body?: object) =>
    callAdmin(system().gateway, `/admin/v1${path}`, { method, ...(body && { body }) });
  const read = async (key: string) => {
    const response = await fetch(`${system().gateway.public}/v1/conversations`, { headers: bearer(key) });
    await response.arrayBuffer();
    return response.status;
  };
  /** A new customer with a key. */
  async function start(id: string, body: object = {}) {
    await admin('POST', '/customers', { id, plan: 'starter' });
    const { body: created } = await admin('POST', `/customers/${id}/keys`, body);
    const session = async (scopes?: readonly string[]) => {
      const headers = await openSession(system().gateway, id, scopes ? { scopes } : {});
      return (method: string, at: string, body?: object) =>
        send(system().gateway.portal, method, `/portal/v1/keys${at}`, headers, body && JSON.stringify(body));
    };
    return { id: created.id as string, value: created.key as string, session };
  }

  it('is set, changed and removed; other values and a root are refused', async () => {
    const { id } = await start('set');
    for (const requests_per_hour of [0, -1, 1.5, '10', true, [5]]) {
      const refused = await admin('PATCH', `/keys/${id}`, { requests_per_hour });
      expect([refused.status, refused.body.detail]).toEqual([422, expect.stringContaining('requests_per_hour')]);
    }
    expect((await admin('POST', '/customers/set/keys', { requests_per_hour: 5, root: id })).status).toBe(422);
    expect((await admin('PATCH', `/keys/${id}`, { root: 'other' })).status).toBe(422);
    expect((await admin('PATCH', `/keys/${id}`, { requests_per_hour: 7 })).body).toMatchObject({
      requests_per_hour: 7,
      used: 0,
    });
    const { body: audit } = await admin('GET', '/audit?customer=set&limit=1');
    expect(audit.items[0]).toMatchObject({ action: 'key.update', key_id: id, details: { requests_per_hour: 7 } });
    expect((await admin('PATCH', `/keys/${id}`, { requests_per_hour: null })).body).toMatchObject({
      requests_per_hour: null,
      used: null,
    });
    const value = 'imported-key-with-a-limit';
    expect((await admin('POST', '/customers/set/keys', { value, requests_per_hour: 9 })).body).toMatchObject({
      requests_per_hour: 9,
    });
  });

  it('has a usage of its own, which can be reset alone', async () => {
    const { id, value } = await start('usage');
    const usage = async () => (await admin('GET', `/keys/${id}/usage`)).body;
    const none = { limit: null, used: null, remaining: null, reset_seconds: null, window_seconds: 3600 };
    expect(await usage()).toEqual(none);
    expect((await admin('DELETE', `/keys/${id}/usage`)).status).toBe(422);
    expect((await admin('GET', '/keys/unknown/usage')).status).toBe(404);
    expect((await admin('DELETE', '/keys/unknown/usage')).status).toBe(404);
    await admin('PATCH', `/keys/${id}`, { requests_per_hour: 2 });
    await expect.poll(async () => (await read(value)) && (await usage()).used, PATIENCE).toBe(2);
    expect(await usage()).toMatchObject({ limit: 2, remaining: 0, reset_seconds: expect.any(Number) });
    expect((await admin('GET', '/customers/usage/keys')).body.items).toMatchObject([
      { id, requests_per_hour: 2, used: 2 },
    ]);
    expect(await read(value)).toBe(429);
    const ofCustomer = async () => (await admin('GET', '/customers/usage/usage')).body.used;
    const before = await ofCustomer();
    expect((await admin('DELETE', `/keys/${id}/usage`)).status).toBe(204);
    expect((await usage()).used).toBe(0);
    expect(await ofCustomer()).toBe(before);
    await expect.poll(() => read(value), PATIENCE).toBe(200);
    const { body: audit } = await admin('GET', '/audit?customer=usage&limit=1');
    expect(audit.items[0]).toMatchObject({ action: 'usage.reset', customer: 'usage', key_id: id });
  });

  it('is explained: which keys refuse now, and no customer counts as admitted if all of its keys do', async () => {
    const { id, value } = await start('explained', { requests_per_hour: 1 });
    const explain = async () => (await admin('GET', '/customers/explained/explain')).body;
    expect(await explain()).toMatchObject({ admitted: true, refusing_keys: [] });
    await expect.poll(() => read(value), PATIENCE).toBe(429);
    await expect.poll(async () => (await explain()).admitted, PATIENCE).toBe(false);
    expect(await explain()).toMatchObject({
      verdict: 'Its requests are refused now: the own limits of its valid keys are used up.',
      refusing_keys: [{ key_id: id, limit: 1, used: 1, reset_seconds: expect.any(Number) }],
    });
    await admin('POST', '/customers/explained/keys', {});
    expect(await explain()).toMatchObject({
      admitted: true,
      verdict: 'Its requests are admitted now, except with keys whose own limits are used up or unreadable.',
      refusing_keys: [{ key_id: id }],
    });
  });

  it("is the customer's own affair in the portal, also one that the operator set; keys of others are not found", async () => {
    const { id, value, session } = await start('own', { requests_per_hour: 1 });
    const other = await start('neighbour', { requests_per_hour: 3 });
    const call = await session();
    await read(value);
    await expect.poll(() => read(value), PATIENCE).toBe(429);
    expect((await call('PATCH', `/${id}`, { requests_per_hour: 500 })).body).toMatchObject({ requests_per_hour: 500 });
    await expect.poll(() => read(value), PATIENCE).toBe(200);
    expect((await call('PATCH', `/${id}`, { requests_per_hour: null })).body).toMatchObject({
      requests_per_hour: null,
    });
    expect((await call('PATCH', `/${id}`, { requests_per_hour: 0 })).status).toBe(422);
    expect((await call('PATCH', `/${id}`, { root: other.id })).status).toBe(422);
    const created = await call('POST', '', { name: 'agent', requests_per_hour: 2 });
    expect(created.body).toMatchObject({ requests_per_hour: 2 });
    const rotated = await call('POST', `/${created.body.id}/rotate`, {});
    expect(rotated.body).toMatchObject({ requests_per_hour: 2 });
    const { items } = (await call('GET', '')).body;
    expect(items.map((key: { requests_per_hour: unknown }) => key.requests_per_hour)).toEqual([null, 2, 2]);
    const { body: audit } = await admin('GET', '/audit?customer=own&action=key.update');
    expect(audit.items.at(-1)).toMatchObject({
      actor: 'portal:own',
      details: { requests_per_hour: 500 },
      before: { requests_per_hour: 1 },
    });

    for (const [method, at] of [
      ['PATCH', ''],
      ['POST', '/rotate'],
    ] as const)
      expect((await call(method, `/${other.id}${at}`, method === 'PATCH' ? { requests_per_hour: 9 } : {})).status).toBe(
        404,
      );
    expect((await admin('GET', `/keys/${other.id}`)).body).toMatchObject({ requests_per_hour: 3, state: 'live' });
    const reader = await session(['keys:read', 'usage:read']);
    expect((await reader('PATCH', `/${id}`, { requests_per_hour: 9 })).status).toBe(403);
    expect((await reader('GET', '')).body.items[1]).toMatchObject({ requests_per_hour: 2, used: 0 });
  });
});
