/** What customers learn of the routes: the scopes that they can restrict a key to, and a request to try it with. */
import { expect, it } from 'vitest';
import { send } from '../console/support.ts';
import { callAdmin } from '../support/admin.ts';
import { createToken, overEachStore } from './support.ts';

const ROUTES = [
  { path: '/health', methods: ['GET'], key: 'none' },
  { path: '/old', methods: ['GET'], deprecated_at: '2026-01-01T00:00:00Z' },
  {
    path: '/api/v1/things/{thing_id}',
    methods: ['GET', 'DELETE'],
    scope: 'things',
    description: 'Read & delete <things>',
  },
  { path: '/api/v1/things', methods: ['GET'], scope: 'things' },
  { path: '/api/v1/files/{rest...}', methods: ['GET', 'PUT'], scope: 'files' },
  { path: '/api/v1/notes', methods: ['POST'], scope: 'notes' },
];
const CONFIG = {
  routes: ROUTES as unknown as Record<string, unknown>,
  aliases: {},
  portal: { api_url: 'https://api.example.com/base/' },
};

overEachStore(
  'the portal',
  (system) => {
    let customers = 0;
    async function newCustomer(details: object = {}) {
      const { gateway } = system();
      const id = `scoped-${++customers}`;
      await callAdmin(gateway, '/admin/v1/customers', { body: { id, plan: 'starter', ...details } });
      const headers = { authorization: `Bearer ${await createToken(gateway, id)}`, 'content-type': 'application/json' };
      const call = (method: string, path: string, body?: object) =>
        send(gateway.portal, method, `/portal/v1/${path}`, headers, body && JSON.stringify(body));
      return { id, call };
    }

    it('offers each scope once, with its routes and their descriptions', async () => {
      const { call } = await newCustomer();
      const { items } = (await call('GET', 'scopes')).body;
      expect(items.map(({ scope }: { scope: string }) => scope)).toEqual(['things', 'files', 'notes']);
      expect(items[0].routes).toEqual([
        {
          methods: ['GET', 'HEAD', 'DELETE'],
          path: '/api/v1/things/{thing_id}',
          description: 'Read & delete <things>',
        },
        { methods: ['GET', 'HEAD'], path: '/api/v1/things', description: null },
      ]);
    });

    it('refuses a scope that no route has, in a new key and in a change, and names those that there are', async () => {
      const { call } = await newCustomer();
      const unknown = [422, 'scopes: must be some of things, files, notes'];
      for (const scopes of [['thing'], ['things', 'Files'], ['__proto__'], ['things,files']]) {
        const { status, body } = await call('POST', 'keys', { scopes });
        expect([status, body.detail], scopes.join()).toEqual(unknown);
      }
      const { id } = (await call('POST', 'keys')).body;
      const changed = await call('PATCH', `keys/${id}`, { scopes: ['things', 'nothing'] });
      expect([changed.status, changed.body.detail]).toEqual(unknown);
      expect((await call('PATCH', `keys/${id}`, { scopes: ['notes', 'things'] })).status).toBe(200);
      expect((await call('GET', 'keys')).body.items).toMatchObject([{ id, scopes: ['notes', 'things'] }]);
    });

    it('keeps a scope that the operator gave a key, though no route has it', async () => {
      const { id, call } = await newCustomer();
      const body = { scopes: ['retired', 'things'] };
      const key = (await callAdmin(system().gateway, `/admin/v1/customers/${id}/keys`, { body })).body.id;
      expect((await call('PATCH', `keys/${key}`, { scopes: ['retired'] })).body.scopes).toEqual(['retired']);
      expect((await call('POST', `keys/${key}/rotate`)).body.scopes).toEqual(['retired']);
    });

    it.each([
      [undefined, 'https://api.example.com/base/api/v1/things'],
      [['notes', 'things'], 'https://api.example.com/base/api/v1/things'],
      [['files'], 'https://api.example.com/base/api/v1/files/PATH'],
      [['notes'], null],
    ])('shows with a new key of the scopes %j what it may read', async (scopes, url) => {
      const { call } = await newCustomer();
      const created = (await call('POST', 'keys', { scopes })).body;
      expect(created.example_url).toBe(url);
      expect((await call('POST', `keys/${created.id}/rotate`)).body.example_url).toBe(url);
    });

    it('names the plan, by its present name, and its limits, that for a time with its end', async () => {
      const { call } = await newCustomer();
      expect((await call('GET', 'usage')).body).toMatchObject({ plan: 'starter', limit: 1000, limit_until: null });
      const until = new Date(Date.now() + 3_600_000).toISOString();
      const raised = await newCustomer({ temporary_limit: { requests_per_hour: 9, until } });
      expect((await raised.call('GET', 'usage')).body).toMatchObject({
        limit: 9,
        limit_until: until,
        limit_then: 1000,
      });
    });

    it('lets a suspended customer see plan and scopes, and create nothing', async () => {
      const { call } = await newCustomer({ suspended: true });
      expect((await call('GET', 'usage')).body.plan).toBe('starter');
      expect((await call('GET', 'scopes')).status).toBe(200);
      expect((await call('POST', 'keys', { scopes: ['things'] })).body.code).toBe('customer_suspended');
    });
  },
  CONFIG,
);
