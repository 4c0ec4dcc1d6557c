/** The commands of docs/recipes/customers-in-git.md, as a runner runs them, before a gateway and an identity provider. */
import { spawnSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { systemClock } from '../../../src/base/clock.ts';
import { MAIN, run } from '../../cli/support.ts';
import { AUDIENCE, claimsAt, createIssuerKey, ISSUER, sign, startIssuer } from '../../control/admin/issuer.ts';
import { callAdmin } from '../../support/admin.ts';
import { ADMIN_TOKEN } from '../../support/gateway.ts';
import { startSystem } from '../../support/system.ts';
import { blockOf, temporaryFolder } from './support.ts';

interface Step {
  readonly name?: string;
  readonly if?: string;
  readonly run?: string;
}

const WORKFLOW: { jobs: { customers: { steps: readonly Step[] } } } = parse(
  blockOf('customers-in-git', 'yaml', 'jobs:'),
);
const FILE = blockOf('customers-in-git', 'yaml', 'globex');
const [EXPORT, NIGHTLY] = ['export', 'test -z'].map((text) => blockOf('customers-in-git', 'sh', text));

// Runners have it, and other machines need not.
const noCurl = spawnSync('curl', ['--version']).status !== 0;

async function start() {
  const key = await createIssuerKey('key-1');
  const issuer = await startIssuer(key);
  const keys = issuer.answer;
  issuer.answer = async (req, res) => {
    if (req.url !== '/token') return keys(req, res);
    const form = new URLSearchParams(Buffer.concat(await req.toArray()).toString());
    const isClient = req.headers.authorization === `Basic ${btoa('ci:secret')}`;
    const token = await sign(key, claimsAt(systemClock.nowMs(), { sub: 'ci', scope: form.get('scope') }));
    res.writeHead(isClient ? 200 : 401).end(JSON.stringify({ access_token: token }));
  };
  const { gateway } = await startSystem({
    config: {
      admin: { jwt: { jwks_url: issuer.url, issuer: ISSUER, audience: AUDIENCE } },
      plans: { starter: { requests_per_hour: 1000 }, enterprise: { requests_per_hour: 'custom' } },
    },
    customer: { id: 'former', plan: 'starter' },
  });
  const folder = temporaryFolder();
  const file = join(folder, 'customers.yaml');
  writeFileSync(file, FILE);
  const program = join(folder, 'tollgate');
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`);
  chmodSync(program, 0o755);
  const env = {
    PATH: [folder, join(process.execPath, '..'), process.env.PATH].join(delimiter),
    ADMIN_URL: gateway.admin ?? '',
    TOKEN_URL: new URL('/token', issuer.url).href,
    CLIENT: 'ci:secret',
    RUNNER_TEMP: folder,
  };
  const shell = (script: string, more: Record<string, string> = {}) =>
    run('bash', ['--norc', '-e', '-o', 'pipefail', '-c', `cd '${folder}'\n${script}`], { env: { ...env, ...more } });
  return {
    file,
    /** As a runner does: until a step fails. */
    async runJob(event: 'pull_request' | 'push') {
      const SCOPE = event === 'push' ? 'tollgate:write' : 'tollgate:read';
      const steps = WORKFLOW.jobs.customers.steps.filter((step) => step.if === undefined || event === 'push');
      const log: string[] = [];
      for (const { run: script } of steps) {
        if (script === undefined) continue;
        const { status, stdout, stderr } = await shell(script, { SCOPE });
        log.push(stdout, stderr);
        if (status !== 0) return { status, log: log.join('') };
      }
      return { status: 0, log: log.join('') };
    },
    /** A command of an operator, at the gateway. */
    typed: (script = '') => {
      const local = script.replace(/ (customers (?:apply|export))/, ` $1 --admin-url '${gateway.admin}'`);
      return shell(local, { TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN });
    },
    idsOf: async () =>
      (await callAdmin(gateway, '/admin/v1/customers')).body.items.map(({ id }: { id: string }) => id).sort(),
    audit: async () => (await callAdmin(gateway, '/admin/v1/audit')).body.items,
  };
}

it.skipIf(noCurl)(
  'a pull request shows the differences, its merge applies them, and each night tells what differs',
  async () => {
    const { runJob, typed, idsOf, audit } = await start();
    const proposed = await runJob('pull_request');
    expect(proposed.status).toBe(0);
    expect(proposed.log).toMatch(/ would be created +globex +plan="enterprise" requests_per_hour=50000$/m);
    expect(proposed.log).toMatch(/ would be deleted +former$/m);
    expect(await idsOf()).toEqual(['former']);
    expect((await typed(NIGHTLY)).status).toBe(1);

    const merged = await runJob('push');
    expect(merged).toMatchObject({ status: 0, log: expect.stringMatching(/ created +acme .*\n.* deleted +former/s) });
    expect(await idsOf()).toEqual(['acme', 'globex']);
    expect(await audit()).toContainEqual(
      expect.objectContaining({ actor: 'jwt:ci', action: 'customer.create', customer: 'globex' }),
    );
    expect((await typed(NIGHTLY)).status).toBe(0);
    expect((await typed(`${EXPORT}cat customers.yaml`)).stdout).toBe(FILE);
  },
);

it.skipIf(noCurl)('a pull request with faults fails, and names them', async () => {
  const { file, runJob } = await start();
  writeFileSync(file, `${FILE}  - id: initech\n    plan: gold\n`);
  const { status, log } = await runJob('pull_request');
  expect(status).toBe(1);
  expect(log).toContain('customers.yaml:9: plan: must be one of the configured plans: starter, enterprise\n');
});
