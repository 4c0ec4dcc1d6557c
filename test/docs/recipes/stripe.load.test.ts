/** The server of docs/recipes/stripe.md, as it is copied, sets plans by signed events and what Stripe's API says. */
import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { freePort } from '../../../bench/free-port.ts';
import { callAdmin } from '../../support/admin.ts';
import { CHILD_ENVIRONMENT } from '../../support/child-environment.ts';
import { eventually } from '../../support/eventually.ts';
import { ADMIN_TOKEN } from '../../support/gateway.ts';
import { startSystem } from '../../support/system.ts';
import { blockOf, configOf, temporaryFolder } from './support.ts';

const SECRET = 'whsec_of-the-tests';
const API_KEY = 'rk_of-the-tests';
const CUSTOMER = 'cus_QwErTy123';
const SERVER = blockOf('stripe', 'js');

interface Subscription {
  readonly status: string;
  readonly items: { readonly data: readonly unknown[] };
}

function subscription(metadata: Record<string, string>, { status = 'active', quantity = 1 } = {}): Subscription {
  return { status, items: { data: [{ price: { id: 'price_1', metadata }, quantity }] } };
}

const PRO = subscription({ tollgate_plan: 'pro' });

/** A stand-in for the one resource of Stripe's API that the server reads. */
async function startStripe() {
  const stripe = {
    url: '',
    subscriptions: [] as Subscription[],
    asked: [] as string[],
    status: 200,
    /** Sends what was true when the request arrived. */
    respond: (send: () => ServerResponse) => void send(),
  };
  const server = createServer((req, res) => {
    stripe.asked.push(req.url ?? '');
    const isAllowed = req.headers.authorization === `Bearer ${API_KEY}`;
    const document = JSON.stringify({ object: 'list', data: stripe.subscriptions });
    stripe.respond(() => res.writeHead(isAllowed ? stripe.status : 401).end(document));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close().closeAllConnections());
  stripe.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return stripe;
}

async function start() {
  const { gateway } = await startSystem({ config: configOf('stripe'), customer: { id: 'other', plan: 'free' } });
  const stripe = await startStripe();
  const file = join(temporaryFolder(), 'stripe-webhook.mjs');
  writeFileSync(file, SERVER);
  const port = await freePort();
  const env = {
    ...CHILD_ENVIRONMENT,
    ADMIN_URL: gateway.admin,
    STRIPE_URL: stripe.url,
    PORT: String(port),
    TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN,
    STRIPE_API_KEY: API_KEY,
    STRIPE_WEBHOOK_SECRET: SECRET,
  };
  const child = spawn(process.execPath, [file], { env });
  onTestFinished(() => void child.kill());
  let errors = '';
  child.stderr.on('data', (chunk) => (errors += chunk));
  const url = `http://127.0.0.1:${port}/`;
  await eventually('the server listens', async () => (await fetch(url)).status === 413);
  const post = async (body: string, signature: string) =>
    (await fetch(url, { method: 'POST', body, headers: { 'stripe-signature': signature } })).status;
  return {
    gateway,
    stripe,
    post,
    /** Posts an event that Stripe signed now. */
    send: (type: string, object: object = PRO) => {
      const body = eventOf(type, object);
      return post(body, signed(body));
    },
    errors: () => errors,
    customer: async () => (await callAdmin(gateway, `/admin/v1/customers/${CUSTOMER}`)).body,
  };
}

function eventOf(type: string, object: object): string {
  return JSON.stringify({ id: 'evt_1', type, data: { object: { customer: CUSTOMER, ...object } } });
}

const nowSeconds = () => Math.floor(Date.now() / 1000);
const hmac = (body: string, seconds: number | string, secret = SECRET) =>
  createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex');
const signed = (body: string, seconds = nowSeconds()) => `t=${seconds},v1=${hmac(body, seconds)},v0=${'0'.repeat(64)}`;

describe('the server of the Stripe recipe', () => {
  it('has at most 60 lines', () => {
    expect(SERVER.trimEnd().split('\n').length).toBeLessThanOrEqual(60);
  });

  it('creates the customer, and sets plan and limit as the subscription begins, changes and ends', async () => {
    const { stripe, send, customer, errors } = await start();
    stripe.subscriptions = [PRO];
    expect(await send('customer.subscription.created')).toBe(200);
    expect(await customer()).toMatchObject({ plan: 'pro', requests_per_hour: null });
    stripe.subscriptions = [subscription({ tollgate_plan: 'volume', requests_per_hour: '1000' }, { quantity: 7 })];
    expect(await send('customer.subscription.updated')).toBe(200);
    expect(await customer()).toMatchObject({ plan: 'volume', requests_per_hour: 7000 });
    stripe.subscriptions = [subscription({ tollgate_plan: 'pro' }, { status: 'past_due' })];
    expect(await send('customer.subscription.updated')).toBe(200);
    expect(await customer()).toMatchObject({ plan: 'pro', requests_per_hour: null });
    stripe.subscriptions = [subscription({ tollgate_plan: 'pro' }, { status: 'unpaid' })];
    expect(await send('customer.subscription.updated')).toBe(200);
    expect(await customer()).toMatchObject({ plan: 'free', requests_per_hour: null });
    expect(stripe.asked).toEqual(Array(4).fill(`/v1/subscriptions?limit=100&customer=${CUSTOMER}`));
    expect(errors()).toBe('');
  });

  it('sets the present state whatever late or repeated events say, and leaves suspensions alone', async () => {
    const { gateway, stripe, send, customer } = await start();
    stripe.subscriptions = [PRO];
    await send('customer.subscription.created');
    await callAdmin(gateway, `/admin/v1/customers/${CUSTOMER}`, { method: 'PATCH', body: { suspended: true } });
    stripe.subscriptions = [];
    for (const type of ['deleted', 'updated', 'created', 'updated']) {
      expect(await send(`customer.subscription.${type}`)).toBe(200);
      expect(await customer()).toMatchObject({ plan: 'free', suspended: true });
    }
    stripe.subscriptions = [subscription({ tollgate_plan: 'free' }, { status: 'incomplete' }), PRO];
    expect(await send('customer.subscription.deleted')).toBe(200);
    expect(await customer()).toMatchObject({ plan: 'pro', suspended: true });
    const before = stripe.asked.length;
    expect(await send('invoice.paid')).toBe(200);
    expect(stripe.asked).toHaveLength(before);
  });

  it('applies events one after the other: an older state never overwrites a newer one', async () => {
    const { stripe, post, send, customer } = await start();
    stripe.subscriptions = [PRO];
    const held: (() => unknown)[] = [];
    stripe.respond = (send) => void held.push(send);
    const first = send('customer.subscription.updated');
    await expect.poll(() => held.length).toBe(1);
    stripe.subscriptions = [];
    stripe.respond = (send) => void send();
    const second = send('customer.subscription.deleted');
    // Its response shows that the server has had the time to begin with the second event.
    expect(await post('{}', 't=1,v1=00')).toBe(400);
    held[0]?.();
    expect(await Promise.all([first, second])).toEqual([200, 200]);
    expect(await customer()).toMatchObject({ plan: 'free' });
  });

  it('refuses what Stripe did not sign within 5 minutes, and accepts one good signature among several', async () => {
    const { stripe, post, customer } = await start();
    stripe.subscriptions = [PRO];
    const body = eventOf('customer.subscription.created', PRO);
    const now = nowSeconds();
    const refused = [
      '',
      'v1=',
      `t=${now}`,
      `t=${now},v1=`,
      `t=${now},v1=${hmac(body, now).slice(2)}`,
      `t=${now},v0=${hmac(body, now)}`,
      `t=${now},v1=${hmac(body, now, 'whsec_of-another')}`,
      `t=${now},v1=${hmac(`${body} `, now)}`,
      `t=${now + 1},v1=${hmac(body, now)}`,
      `v1=${hmac(body, '')}`,
      `t=,v1=${hmac(body, '')}`,
      `t=NaN,v1=${hmac(body, 'NaN')}`,
      signed(body, now - 310),
      signed(body, now + 310),
    ];
    for (const signature of refused) expect(await post(body, signature), signature).toBe(400);
    expect(await post(`${body} `, signed(body))).toBe(400);
    expect(stripe.asked).toEqual([]);
    expect(await post(body, `t=${now},v1=${hmac(body, now, 'whsec_before')},v1=${hmac(body, now)}`)).toBe(200);
    expect(await post(body, signed(body, now - 250))).toBe(200);
    expect(await customer()).toMatchObject({ plan: 'pro' });
  });

  it('responds 500 until Stripe, the price and the gateway are right, and changes nothing meanwhile', async () => {
    const { gateway, stripe, send, customer, errors } = await start();
    const type = 'customer.subscription.updated';
    stripe.status = 503;
    expect(await send(type)).toBe(500);
    stripe.status = 200;
    for (const metadata of [{}, { tollgate_plan: 'pro', requests_per_hour: 'many' }, { tollgate_plan: 'unknown' }]) {
      stripe.subscriptions = [subscription(metadata as Record<string, string>)];
      expect(await send(type)).toBe(500);
    }
    expect(errors()).toContain('the metadata of price price_1 is wrong');
    expect((await customer()).plan ?? 'free').toBe('free');
    stripe.subscriptions = [PRO];
    expect(await send(type)).toBe(200);
    expect(await customer()).toMatchObject({ plan: 'pro' });
    await gateway.close();
    expect(await send(type)).toBe(500);
    expect(errors()).not.toMatch(new RegExp(`${SECRET}|${API_KEY}|${ADMIN_TOKEN}`));
  });
});
