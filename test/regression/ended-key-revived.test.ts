/**
 * `PATCH /admin/v1/keys/{id}` with `expires_at: null`, as a dashboard sends that writes back all that it read, made a key
 * work for ever that had expired, or that a rotation had replaced because it had leaked.
 */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { NOW, overBothStores, type TestAdmin } from '../control/admin/support.ts';

const TRIES = 10;
const MINUTE_MS = 60_000;
const later = (ms: number) => new Date(Date.parse(NOW) + ms).toISOString();

overBothStores((start) => {
  let admin: TestAdmin;
  beforeEach(async () => {
    admin = await start();
    await admin.call('POST', '/admin/v1/customers', { id: 'acme', plan: 'starter' });
  });
  afterEach(() => admin.close());

  const create = async (body: object): Promise<string> =>
    (await admin.call('POST', '/admin/v1/customers/acme/keys', body)).body.id;
  const patch = (id: string, body: object) => admin.call('PATCH', `/admin/v1/keys/${id}`, body);
  const rotate = (id: string) => admin.call('POST', `/admin/v1/keys/${id}/rotate`, { grace_seconds: 60 });
  const expiryOf = async (id: string) => (await admin.call('GET', `/admin/v1/keys/${id}`)).body.expires_at;

  it.each([
    ['none', null],
    ['a later one', later(10 * MINUTE_MS)],
  ])('a key that has expired gets no new expiry: %s', async (_what, expiresAt) => {
    const id = await create({ expires_at: later(MINUTE_MS) });
    admin.advance(MINUTE_MS);
    const { status, body } = await patch(id, { expires_at: expiresAt, name: 'x' });
    expect([status, body.code, body.detail]).toEqual([409, 'conflict', 'The key has expired. Create a new one.']);
    expect(await expiryOf(id)).toBe(later(MINUTE_MS));
    expect((await patch(id, { name: 'old' })).status).toBe(200);
  });

  it('a key that was replaced keeps an end', async () => {
    const id = await create({});
    await rotate(id);
    const { status, body } = await patch(id, { expires_at: null });
    expect([status, body.code]).toEqual([409, 'conflict']);
    expect(body.detail).toMatch(/^The key is replaced by key_\w+ and must expire\./);
    expect(await expiryOf(id)).toBe(later(MINUTE_MS));
    expect((await patch(id, { expires_at: later(1000) })).status).toBe(200);
    expect(await expiryOf(id)).toBe(later(1000));
  });

  it('nor does it lose its end to a change that is sent beside the rotation', async () => {
    for (let round = 0; round < TRIES; round += 1) {
      const id = await create({ expires_at: later(10 * MINUTE_MS) });
      const calls = [() => patch(id, { expires_at: null }), () => rotate(id)];
      if (round % 2 === 0) calls.reverse();
      await Promise.all(calls.map((call) => call()));
      const key = await admin.records.findKeyById(id);
      if (key?.replacedBy !== undefined) expect(key.expiresAt).toBe(later(MINUTE_MS));
    }
  });
});
