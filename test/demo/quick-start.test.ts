/** The quick start as its users run it. */
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { expect, it } from 'vitest';
import { temporaryFile } from '../cli/support.ts';
import { codeOf, exchange } from '../portal/support.ts';
import { bearer, callAdmin } from '../support/admin.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_TOKEN } from '../support/gateway.ts';
import { type RunningGateway, runQuickStart, startQuickStart } from '../support/process.ts';
import { freePort } from '../support/redis-server.ts';

it('serves every demo customer on both prefixes, each with its own quota', async () => {
  const gateway = await startQuickStart();
  const quotas = [
    ['tg_demo_starter', 1000],
    ['tg_demo_professional', 5000],
    ['tg_demo_business', 20_000],
    ['tg_demo_enterprise', 50_000],
  ] as const;
  for (const [key, limit] of quotas) {
    for (const prefix of ['/v1', '/api/v1']) {
      const list = await fetch(`${gateway.public}${prefix}/conversations?limit=1`, { headers: bearer(key) });
      expect(list.status).toBe(200);
      expect(list.headers.get('ratelimit-policy')).toBe(`"hourly";q=${limit};w=3600`);
      const { data } = (await list.json()) as { data: [{ id: string }] };
      expect(data).toHaveLength(1);
      const one = await fetch(`${gateway.public}${prefix}/conversations/${data[0].id}`, { headers: bearer(key) });
      expect(one.status).toBe(200);
      expect(one.headers.get('ratelimit-policy')).toBe(`"hourly";q=${limit};w=3600`);
      expect(await one.json()).toEqual(data[0]);
    }
  }
  expect((await fetch(`${gateway.public}/v1/conversations`)).status).toBe(401);
  expect((await fetch(`${gateway.ops}/readyz`)).status).toBe(200);
  expect((await fetch(`${gateway.admin}/status`, { headers: bearer('anything') })).status).toBe(401);
});

it('prints the demo keys and what to try, with the addresses it took', async () => {
  const gateway = await startQuickStart();
  const output = gateway.output();
  for (const plan of ['starter', 'professional', 'business', 'enterprise']) {
    expect(output).toMatch(new RegExp(`^ +tg_demo_${plan} +${plan}\\b`, 'm'));
  }
  expect(output).toContain(
    `curl -i -H 'Authorization: Bearer tg_demo_starter' '${gateway.public}/v1/conversations?limit=2'`,
  );
  expect(output).toContain(`curl -s ${gateway.ops}/readyz`);
});

it('prints a link that opens the portal of a demo customer', async () => {
  const gateway = await startQuickStart();
  const [link = ''] = /http:\S+\/portal#code=\S+/.exec(gateway.output()) ?? [];
  expect(link).toMatch(new RegExp(`^${gateway.portal}/portal#code=`));
  const opened = await exchange(gateway.portal ?? '', codeOf(new URL(link)));
  expect(opened.body).toMatchObject({ customer: 'demo-starter', scopes: ['usage:read', 'keys:read', 'keys:write'] });
});

it('listens on 127.0.0.1 and no other address of the machine', async () => {
  const gateway = await startQuickStart();
  const others = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .map(({ address }) => address)
    .filter((address) => address !== '127.0.0.1' && !address.startsWith('fe80:'));
  // On Linux all of 127.0.0.0/8 is this machine, so there is always one to try.
  if (process.platform === 'linux') others.push('127.0.0.2');
  for (const url of [gateway.public, gateway.ops, gateway.admin ?? '', gateway.portal ?? '']) {
    const { hostname, port } = new URL(url);
    expect(hostname).toBe('127.0.0.1');
    for (const host of others) expect(await accepts(host, Number(port)), `${host}:${port}`).toBe(false);
  }
});

it('remembers over a crash what was used', async () => {
  const env = { QUICK_START_STORE: `${await temporaryFile('unused', '')}.sqlite` };
  const gateway = await startQuickStart(env);
  const remaining = async (url: string) =>
    (await fetch(`${url}/v1/conversations`, { headers: bearer('tg_demo_starter') })).headers.get(
      'x-ratelimit-remaining',
    );
  expect(await remaining(gateway.public)).toBe('999');
  expect(await remaining(gateway.public)).toBe('998');
  gateway.signal('SIGKILL');
  await gateway.finished;
  const again = await startQuickStart(env);
  expect(await remaining(again.public)).toBe('997');
});

it('creates its customers by the admin API once, and leaves those of a kept store as they are', async () => {
  const env = { QUICK_START_STORE: `${await temporaryFile('unused', '')}.sqlite`, TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN };
  const first = await startQuickStart(env);
  const actions = async (gateway: RunningGateway) => {
    const { body } = await callAdmin(gateway, '/admin/v1/audit');
    const { items } = body as { items: Record<string, string>[] };
    return items
      .filter(({ action }) => action !== 'portal_session.create')
      .map(({ action, customer }) => `${action} ${customer}`)
      .toReversed();
  };
  const created = ['starter', 'professional', 'business', 'enterprise'].flatMap((plan) => [
    `customer.create demo-${plan}`,
    `key.import demo-${plan}`,
  ]);
  expect(await actions(first)).toEqual(created);
  const path = '/admin/v1/customers/demo-starter';
  await callAdmin(first, path, { method: 'PATCH', body: { suspended: true } });
  first.signal('SIGTERM');
  expect((await first.finished).status).toBe(0);
  const second = await startQuickStart(env);
  expect(await actions(second)).toEqual([...created, expect.stringMatching(/ demo-starter$/)]);
  expect((await callAdmin(second, path)).body.suspended).toBe(true);
});

it('ends with status 1 and the reason if the gateway cannot start, and takes the options of tollgate start', async () => {
  const env = { QUICK_START_STORE: '/dev/null/store.sqlite' };
  expect(await runQuickStart({ args: ['--log-format', 'pretty'], env })).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/^tollgate: .*\n$/),
  });
  expect((await runQuickStart({ args: ['--fast'], env })).status).toBe(2);
});

function accepts(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host);
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

it('serves a demo key from the first moment in which the public port is open', async () => {
  const port = String(await freePort());
  const starting = startQuickStart({ PORT: port });
  const request = () =>
    fetch(`http://127.0.0.1:${port}/v1/conversations?limit=1`, { headers: bearer('tg_demo_starter') }).then(
      ({ status }) => status,
      () => undefined,
    );
  let first: number | undefined;
  await eventually('the port is open', async () => {
    first = await request();
    return first !== undefined;
  });
  expect(first).toBe(200);
  await starting;
});
