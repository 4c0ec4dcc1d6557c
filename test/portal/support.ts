/** A gateway with a portal, and calls to it as a browser or a server makes them. */
import { afterAll, beforeAll, describe } from 'vitest';
import { type Received, send } from '../console/support.ts';
import { callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { startBackend } from '../support/backend.ts';
import { STORES, startTestGateway, type TestGateway, type TestStore } from '../support/gateway.ts';

/** The tests' ports are free ones: the Host check ignores the port. */
export const PUBLIC_URL = 'http://127.0.0.1';
export const EVERY_SCOPE = ['usage:read', 'keys:read', 'keys:write'];
const OWN_PAGE = { 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' };

export type Headers = Record<string, string>;

export interface PortalGateway extends TestGateway {
  readonly portal: string;
}

export interface PortalSystem {
  readonly gateway: PortalGateway;
  /** Starts another gateway on the same store. Not with the embedded store. */
  startAnother(config?: Record<string, Record<string, unknown>>): Promise<PortalGateway>;
}

export async function startPortalGateway(
  storeUrl: string,
  upstreamUrl: string,
  { portal, ...config }: Record<string, Record<string, unknown>> = {},
): Promise<PortalGateway> {
  const section = { host: '127.0.0.1', port: 0, public_url: PUBLIC_URL, title: 'Example API', ...portal };
  const gateway = await startTestGateway({ storeUrl, upstreamUrl, config: { ...config, portal: section } });
  if (gateway.portal === undefined) throw new Error('the portal does not listen');
  return gateway as PortalGateway;
}

/** Describes a suite over each store, with one gateway. */
export function overEachStore(
  name: string,
  suite: (system: () => PortalSystem) => void,
  config?: Record<string, Record<string, unknown>>,
): void {
  describe.each(STORES)(`${name}, over $name`, (kind) => {
    const opened: { close(): Promise<unknown> }[] = [];
    let system: PortalSystem;
    beforeAll(async () => {
      const store: TestStore = await kind.start();
      const backend = await startBackend();
      opened.push(store, backend);
      const start = async (config?: Record<string, Record<string, unknown>>) => {
        const gateway = await startPortalGateway(store.url, backend.url, config);
        opened.push(gateway);
        return gateway;
      };
      system = { gateway: await start(config), startAnother: start };
    });
    afterAll(async () => {
      for (const each of opened.reverse()) await each.close();
    });
    suite(() => system);
  });
}

export async function createCustomer(gateway: TestGateway, id: string): Promise<void> {
  await createCustomerWithKey(gateway, { id, plan: 'starter' });
}

export async function createLink(
  gateway: Pick<TestGateway, 'admin'>,
  customer: string,
  body: object = {},
): Promise<URL> {
  const path = `/admin/v1/customers/${customer}/portal-sessions`;
  const created = await callAdmin(gateway, path, { body: { scopes: EVERY_SCOPE, ...body } });
  if (created.status !== 201) throw new Error(`no link: ${JSON.stringify(created)}`);
  return new URL(created.body.url);
}

export async function createToken(
  gateway: Pick<TestGateway, 'admin'>,
  customer: string,
  body: object = {},
): Promise<string> {
  const path = `/admin/v1/customers/${customer}/portal-tokens`;
  const created = await callAdmin(gateway, path, { body: { scopes: EVERY_SCOPE, ...body } });
  if (created.status !== 201) throw new Error(`no token: ${JSON.stringify(created)}`);
  return created.body.token;
}

export const codeOf = (link: URL) => link.hash.replace('#code=', '');

export function exchange(origin: string, code: string, headers: Headers = {}): Promise<Received> {
  return send(origin, 'POST', '/portal/session', { ...OWN_PAGE, ...headers }, JSON.stringify({ code }));
}

/** Returns the headers with which the page of a session sends its requests. */
export function sessionOf({ headers, body }: Received): Headers {
  const [cookie = ''] = headers['set-cookie']?.[0]?.split(';') ?? [];
  return { ...OWN_PAGE, cookie, 'x-tollgate-session-binding': body.binding };
}

export async function openSession(gateway: PortalGateway, customer: string, body: object = {}): Promise<Headers> {
  const opened = await exchange(gateway.portal, codeOf(await createLink(gateway, customer, body)));
  if (opened.status !== 200) throw new Error(`no session: ${JSON.stringify(opened.body)}`);
  return sessionOf(opened);
}
