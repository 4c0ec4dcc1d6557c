import { request } from 'node:http';
import { onTestFinished } from 'vitest';
import { callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { EMBEDDED_STORE, type StoreKind, startTestGateway, type TestGateway } from '../support/gateway.ts';

export const CHECK_TOKEN = 'check-token-of-the-tests';

/** `/v1/orders/...` needs a scope that `limitedKey` lacks. */
const ROUTES = [
  { path: '/v1/open', methods: ['GET', 'POST'] },
  { path: '/v1/open/{id}', methods: ['GET'] },
  { path: '/health', methods: ['GET'], key: 'none' },
  { path: '/v1/orders', methods: ['GET', 'POST'], scope: 'orders' },
  { path: '/v1/orders/{id}', methods: ['GET', 'POST'], scope: 'orders' },
] as const;

/** A machine that is busy is no store that is away. */
export const PATIENT = { store: { timeout_ms: 5000 } };

export interface CheckSystem {
  readonly gateway: TestGateway;
  readonly storeUrl: string;
  /** Of the customer `acme`. */
  readonly key: string;
  readonly keyId: string;
}

interface Settings {
  readonly store?: StoreKind;
  readonly config?: Record<string, Record<string, unknown>>;
  readonly limit?: number;
}

/** A gateway without a backend, closed when the test that called this ends. */
export async function startCheckSystem({
  store: kind = EMBEDDED_STORE,
  ...settings
}: Settings = {}): Promise<CheckSystem> {
  const store = await kind.start();
  onTestFinished(() => store.close());
  const gateway = await startCheckGateway(store.url, settings.config);
  onTestFinished(() => gateway.close());
  const customer = { id: 'acme', plan: 'enterprise', requests_per_hour: settings.limit ?? 1000 };
  const key = await createCustomerWithKey(gateway, customer);
  const { body } = await callAdmin(gateway, '/admin/v1/customers/acme/keys');
  return { gateway, storeUrl: store.url, key, keyId: body.items[0].id };
}

export function startCheckGateway(storeUrl: string, config: Record<string, Record<string, unknown>> = {}) {
  const check = { host: '127.0.0.1', port: 0, token: CHECK_TOKEN, trusted_proxies: ['127.0.0.1'], ...config.check };
  const routes = ROUTES as never;
  return startTestGateway({ storeUrl, upstreamUrl: undefined, config: { routes, ...config, check } });
}

/** A key of `acme` that has only the scope `other`. */
export async function createLimitedKey(gateway: TestGateway, members: object = { scopes: ['other'] }): Promise<string> {
  const { body } = await callAdmin(gateway, '/admin/v1/customers/acme/keys', { body: members });
  return body.key;
}

export interface CheckAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Record<string, string | undefined>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: of any call
  readonly body: any;
}

interface CheckRequest {
  readonly method?: string;
  /** Values in a list are sent as several headers. */
  readonly headers?: Record<string, string | string[]>;
  readonly body?: string;
  /** Undefined: no token. */
  readonly token?: string | string[] | undefined;
}

/** Sends a target as it is, which `fetch` would not. */
export function ask(gateway: Pick<TestGateway, 'check'>, path: string, given: CheckRequest = {}): Promise<CheckAnswer> {
  const { method = 'GET', headers = {}, body } = given;
  const token = 'token' in given ? given.token : CHECK_TOKEN;
  const { hostname, port } = new URL(gateway.check);
  const sent = { ...headers, ...(token !== undefined && { 'X-Tollgate-Check-Token': token }) };
  return new Promise((resolve, reject) => {
    const req = request({ hostname, port, path, method, headers: sent }, (res) => {
      let text = '';
      res.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
      });
      res.on('end', () => {
        const isJson = /json/.test(res.headers['content-type'] ?? '') && text !== '';
        const fields = res.headers as Record<string, string | undefined>;
        resolve({ status: res.statusCode ?? 0, headers: fields, text, body: isJson ? JSON.parse(text) : undefined });
      });
    });
    req.on('error', reject);
    req.end(body);
  });
}

/** What `X-Tollgate-Refusal` holds. */
export function refusalOf({ headers }: CheckAnswer) {
  return JSON.parse(Buffer.from(headers['x-tollgate-refusal'] ?? '', 'base64url').toString());
}

/** The three calls by which a proxy asks, for the same request; and the code of each answer. */
export const FORMS = [
  {
    name: 'ext-authz',
    ask: (gateway: TestGateway, method: string, target: string, headers = {}) =>
      ask(gateway, `/ext-authz${target}`, { method, headers }),
    codeOf: ({ body }: CheckAnswer) => body?.code as string | undefined,
  },
  {
    name: 'forward-auth',
    ask: (gateway: TestGateway, method: string, target: string, headers = {}) =>
      ask(gateway, '/forward-auth', {
        headers: { ...headers, 'X-Forwarded-Method': method, 'X-Forwarded-Uri': target },
      }),
    codeOf: ({ body }: CheckAnswer) => body?.code as string | undefined,
  },
  {
    name: 'nginx',
    ask: (gateway: TestGateway, method: string, target: string, headers = {}) =>
      ask(gateway, '/nginx', { headers: { ...headers, 'X-Original-Method': method, 'X-Original-URI': target } }),
    codeOf: (answer: CheckAnswer) => (answer.status === 403 ? (refusalOf(answer).document.code as string) : undefined),
  },
] as const;

export function verify(gateway: TestGateway, members: object, headers: Record<string, string> = {}) {
  const json = { 'Content-Type': 'application/json', ...headers };
  return ask(gateway, '/verify', { method: 'POST', headers: json, body: JSON.stringify(members) });
}

/** The units of `acme` that are used. */
export async function usedOf(gateway: TestGateway): Promise<number> {
  return (await callAdmin(gateway, '/admin/v1/customers/acme/usage')).body.used;
}
