/**
 * A customer could read its keys in the portal as often as it liked, 1,000 at a time: twenty requests a second with one
 * token kept a core busy, and so delayed the requests of all other customers. Then `GET /portal/session` and changes of
 * keys that do not exist were still not counted.
 */
import { expect, it } from 'vitest';
import { send } from '../console/support.ts';
import { createCustomer, createToken, overEachStore } from '../portal/support.ts';

const READS = ['/portal/v1/usage', '/portal/v1/usage/history', '/portal/v1/keys'];
const UNCOUNTED = ['GET /portal/session', 'PATCH /portal/v1/keys/nosuch', 'DELETE /portal/v1/keys/nosuch'];

overEachStore('a customer in the portal', (system) => {
  it('reads at most 50 times a second, over all its tokens, and takes nothing from another customer', async () => {
    const { gateway } = system();
    for (const id of ['greedy', 'calm']) await createCustomer(gateway, id);
    const holders = [await createToken(gateway, 'greedy'), await createToken(gateway, 'greedy')];
    const read = (token: string, path: string) =>
      send(gateway.portal, 'GET', path, { authorization: `Bearer ${token}` });
    const startedMs = performance.now();
    const replies = await Promise.all(
      Array.from({ length: 300 }, (_, at) => read(holders[at % 2] ?? '', READS[at % 3] ?? '')),
    );
    const seconds = Math.ceil((performance.now() - startedMs) / 1000);
    const admitted = replies.filter(({ status }) => status === 200);
    expect(admitted.length).toBeLessThanOrEqual(50 * seconds);
    expect(admitted.length).toBeGreaterThanOrEqual(50);
    for (const { status, body, headers } of replies.filter((reply) => !admitted.includes(reply))) {
      expect({ status, code: body.code }).toEqual({ status: 429, code: 'too_many_reads' });
      expect(Number(headers['retry-after'])).toBeGreaterThan(0);
    }
    expect((await read(await createToken(gateway, 'calm'), '/portal/v1/keys')).status).toBe(200);
    await expect.poll(async () => (await read(holders[0] ?? '', '/portal/v1/keys')).status).toBe(200);
  });

  it.each(UNCOUNTED)('makes at most 50 requests a second: %s', async (endpoint) => {
    const { gateway } = system();
    const id = `greedy-${UNCOUNTED.indexOf(endpoint)}`;
    await createCustomer(gateway, id);
    const [method = '', path = ''] = endpoint.split(' ');
    const headers = { authorization: `Bearer ${await createToken(gateway, id)}`, 'content-type': 'application/json' };
    const startedMs = performance.now();
    const replies = await Promise.all(
      Array.from({ length: 200 }, () =>
        send(gateway.portal, method, path, headers, method === 'PATCH' ? '{}' : undefined),
      ),
    );
    const seconds = Math.ceil((performance.now() - startedMs) / 1000);
    const admitted = replies.filter(({ status }) => status !== 429);
    expect(admitted.length).toBeLessThanOrEqual(50 * seconds);
    expect(admitted.length).toBeGreaterThanOrEqual(50);
  });

  it('reads at most 200 keys at once', async () => {
    const { gateway } = system();
    await createCustomer(gateway, 'acme');
    const headers = { authorization: `Bearer ${await createToken(gateway, 'acme')}` };
    const read = (limit: number) => send(gateway.portal, 'GET', `/portal/v1/keys?limit=${limit}`, headers);
    expect((await read(200)).status).toBe(200);
    expect((await read(201)).status).toBe(422);
  });
});
