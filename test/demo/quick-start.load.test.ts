/** The quick start as its users run it. */
import { readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { expect, it } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { postLogin } from '../console/support.ts';
import { codeOf, exchange } from '../portal/support.ts';
import { bearer } from '../support/admin.ts';
import { startShared } from '../support/cleanup.ts';
import { eventually } from '../support/eventually.ts';
import { startQuickStart } from '../support/process.ts';

const GENERATED = /Log in with this start's admin token: (\S+)\n/;

const started = startShared(() => startQuickStart());
/** Another start, with the first response that its public port gave. */
const startedAgain = startShared(async () => {
  const port = String(await freePort());
  const starting = startQuickStart({ PORT: port });
  const request = () =>
    fetch(`http://127.0.0.1:${port}/v1/conversations?limit=1`, { headers: bearer('tg_demo_starter') }).then(
      ({ status }) => status,
      () => undefined,
    );
  let firstStatus: number | undefined;
  await eventually('the port is open', async () => {
    firstStatus = await request();
    return firstStatus !== undefined;
  });
  return { firstStatus, gateway: await starting };
});

it('serves every demo customer on both prefixes, each with its own quota', async () => {
  const gateway = started();
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
  const gateway = started();
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
  const gateway = started();
  const [link = ''] = /http:\S+\/portal#code=\S+/.exec(gateway.output()) ?? [];
  expect(link).toMatch(new RegExp(`^${gateway.portal}/portal#code=`));
  const opened = await exchange(gateway.portal ?? '', codeOf(new URL(link)));
  expect(opened.body).toMatchObject({ customer: 'demo-starter', scopes: ['usage:read', 'keys:read', 'keys:write'] });
});

it('listens on 127.0.0.1 and no other address of the machine', async () => {
  const gateway = started();
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

function accepts(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host);
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

it('serves a demo key from the first moment in which the public port is open', () => {
  expect(startedAgain().firstStatus).toBe(200);
});

it('npm start shows the address of the console on loopback, and a token of its own for each start', async () => {
  const tokens: string[] = [];
  for (const gateway of [started(), startedAgain().gateway]) {
    const banner = gateway.output();
    expect(gateway.admin).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(banner).toContain(`Console: ${gateway.admin}/console\n`);
    const [, token = ''] = GENERATED.exec(banner) ?? [];
    expect((await postLogin(gateway.admin ?? '', token)).body).toMatchObject({ scope: 'write' });
    expect(banner).toContain(`    export TOLLGATE_ADMIN_TOKEN=${token}\n`);
    expect((await fetch(`${gateway.admin}/status`, { headers: bearer(token) })).status).toBe(200);
    tokens.push(token);
  }
  expect(tokens[0]).not.toBe(tokens[1]);
});

it('applies changes of the config file that it prints', async () => {
  const gateway = started();
  const [file = ''] = /\S+gateway\.yaml$/m.exec(gateway.output()) ?? [];
  const route = '  - { path: "/api/v1/conversations/{id}/messages", methods: [POST] }';
  await writeFile(file, (await readFile(file, 'utf8')).replace(/^routes:$/m, `$&\n${route}`));
  const headers = { ...bearer('tg_demo_starter'), 'Content-Type': 'application/json' };
  const url = `${gateway.public}/v1/conversations/conv_01KF0BMKXZZPWHQNN12ZTYQ3XZ/messages`;
  await eventually('the route is there', async () => {
    const { status } = await fetch(url, { method: 'POST', headers, body: '{"text":"Hello"}' });
    return status === 201;
  });
});
