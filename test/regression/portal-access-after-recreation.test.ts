/**
 * A link, session or token of the portal outlived its customer if another program deleted the record in Redis: created
 * again under the same id, perhaps for somebody else, the customer was open to the holders of the former access.
 */
import { expect, it, onTestFinished } from 'vitest';
import { send } from '../console/support.ts';
import { codeOf, createLink, createToken, exchange, openSession, startPortalGateway } from '../portal/support.ts';
import { callAdmin } from '../support/admin.ts';
import { startBackend } from '../support/backend.ts';
import { startRedis } from '../support/redis-server.ts';

async function startSystem() {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const backend = await startBackend();
  onTestFinished(() => backend.close());
  const gateway = await startPortalGateway(redis.url, backend.url);
  onTestFinished(() => gateway.close());
  const read = async (headers: Record<string, string>) =>
    (await send(gateway.portal, 'GET', '/portal/session', headers)).status;
  const access = async (customer: string) => ({
    token: { authorization: `Bearer ${await createToken(gateway, customer)}` },
    session: await openSession(gateway, customer),
    code: codeOf(await createLink(gateway, customer)),
  });
  return { redis, gateway, read, access };
}

it('ends with a customer that another program deleted, also if the id is used again', async () => {
  const { redis, gateway, read, access } = await startSystem();
  const create = () => callAdmin(gateway, '/admin/v1/customers', { body: { id: 'acme', plan: 'starter' } });
  await create();
  const { token, session, code } = await access('acme');
  expect([await read(token), await read(session)]).toEqual([200, 200]);
  await redis.command('DEL', 'tollgate:customer:{acme}');
  expect((await create()).status).toBe(201);
  expect([await read(token), await read(session)]).toEqual([401, 401]);
  expect((await exchange(gateway.portal, code)).status).toBe(401);
  const fresh = await access('acme');
  expect([await read(fresh.token), await read(fresh.session)]).toEqual([200, 200]);
});

it('ends with a record without a creation time as soon as it is found missing', async () => {
  const { redis, read, access } = await startSystem();
  const write = () => redis.command('HSET', 'tollgate:customer:{acme}', 'plan', 'starter');
  await write();
  const { token, session } = await access('acme');
  expect([await read(token), await read(session)]).toEqual([200, 200]);
  await redis.command('DEL', 'tollgate:customer:{acme}');
  expect(await read(token)).toBe(401);
  await write();
  expect([await read(token), await read(session)]).toEqual([401, 401]);
});
