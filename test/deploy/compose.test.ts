/** deploy/compose.yaml: its parts fit together, and those that are the gateway's own are run. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { BlockList } from 'node:net';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { freePort } from '../../bench/free-port.ts';
import { loadConfig } from '../../src/config/load.ts';
import { startTestGateway } from '../support/gateway.ts';
import { startRedis } from '../support/redis-server.ts';
import { compose, DEPLOY, read, service, text } from './support/compose.ts';
import { REPOSITORY, readCommand } from './support/dockerfile.ts';

const GATEWAYS = ['gateway-1', 'gateway-2'];

function gatewayConfig() {
  const env = {
    REDIS_URL: 'redis://:secret@redis:6379',
    UPSTREAM_URL: 'http://backend',
    TOLLGATE_ADMIN_TOKEN: 'the-token-of-compose',
  };
  return loadConfig(join(DEPLOY, 'compose/gateway/gateway.yaml'), env);
}

describe('the parts of compose.yaml', () => {
  test('mount files that are there, and volumes that are declared', () => {
    for (const [name, { volumes = [] }] of Object.entries(compose.services)) {
      for (const volume of volumes) {
        const [source = ''] = volume.split(':');
        const isThere = source.startsWith('.') ? existsSync(join(DEPLOY, source)) : source in compose.volumes;
        expect(isThere, `${source} of ${name}`).toBe(true);
      }
    }
  });

  test('depend on services that exist', () => {
    for (const { depends_on: needed = [] } of Object.values(compose.services)) {
      for (const name of Array.isArray(needed) ? needed : Object.keys(needed))
        expect(compose.services[name]).toBeDefined();
    }
  });

  test('take their images by version', () => {
    for (const { image = '' } of Object.values(compose.services)) expect(image).toMatch(/^tollgate$|:v?\d+\.\d+/);
  });

  test('have no secret of their own: .env.example lists those to choose', () => {
    const wanted = new Set([...text.matchAll(/\$\{([A-Z_]+):\?/g)].map(([, name]) => name));
    const listed = [...read('.env.example').matchAll(/^([A-Z_]+)=$/gm)].map(([, name]) => name);
    expect(listed.toSorted()).toStrictEqual([...wanted].toSorted());
  });

  test('publish what asks for no password on this machine only', () => {
    const published = Object.entries(compose.services).flatMap(([name, { ports = [] }]) =>
      ports.map((port) => [name, port]),
    );
    expect(published.filter(([, port]) => !port?.startsWith('127.0.0.1:'))).toStrictEqual([
      ['haproxy', `\${PUBLIC_PORT:-8080}:8080`],
    ]);
  });
});

describe.each(GATEWAYS)('%s', (name) => {
  test('is started with the mounted file, which the gateway takes', async () => {
    const { command = [], volumes = [] } = service(name);
    const [verb, option] = readCommand('CMD');
    expect(command.slice(0, 2)).toStrictEqual([verb, option]);
    const [source, target] = volumes[0]?.split(':') ?? [];
    expect(source).toBe('./compose/gateway');
    expect(command[2]).toBe(`${target}/gateway.yaml`);
    expect((await gatewayConfig()).store.url).toBe('redis://:secret@redis:6379');
  });

  test('has every variable that its file asks for', () => {
    const asked = [...read('compose/gateway/gateway.yaml').matchAll(/\$\{([A-Z_]+)/g)].map(([, variable]) => variable);
    expect(Object.keys(service(name).environment ?? {})).toStrictEqual(expect.arrayContaining(asked));
  });

  test('is given more time to stop than it takes', async () => {
    const { shutdown } = await gatewayConfig();
    const graceSeconds = Number(service(name).stop_grace_period?.replace(/s$/, ''));
    expect(graceSeconds * 1000).toBeGreaterThan(shutdown.notReadyMs + shutdown.drainMs);
  });
});

describe('HAProxy', () => {
  const haproxy = read('compose/haproxy.cfg');

  test('sends requests to both gateways, and watches their readiness', async () => {
    const { listen, ops } = await gatewayConfig();
    const servers = [...haproxy.matchAll(/^ {4}server (\S+) (\S+)$/gm)].map(([, name, address]) => [name, address]);
    expect(servers).toStrictEqual(GATEWAYS.map((name) => [name, `${name}:${listen.port}`]));
    expect(haproxy).toContain(`default-server check port ${ops.port} `);
    expect(haproxy).toContain('http-check send meth GET uri /readyz ');
  });

  test('is the proxy that the gateways believe, at an address of the network', async () => {
    const { networks } = service('haproxy');
    if (Array.isArray(networks)) throw new Error('it has no address of its own');
    const address = networks.inside?.ipv4_address ?? '';
    expect((await gatewayConfig()).listen.trustedProxies).toStrictEqual([address]);
    const [subnet = '', bits] = compose.networks.inside.ipam.config[0].subnet.split('/');
    const block = new BlockList();
    block.addSubnet(subnet, Number(bits));
    expect(block.check(address)).toBe(true);
  });

  test('closes idle connections before a gateway does, and its response timeout is longer', async () => {
    const { listen, limits, upstream } = await gatewayConfig();
    const milliseconds = (name: string) =>
      1000 * Number(new RegExp(`^ {4}timeout ${name} (\\d+)s$`, 'm').exec(haproxy)?.[1]);
    expect(milliseconds('http-keep-alive')).toBeLessThan(listen.keepAliveTimeoutMs);
    expect(milliseconds('http-request')).toBeGreaterThan(limits.requestTimeoutMs);
    expect(milliseconds('server')).toBeGreaterThan(upstream?.responseTimeoutMs ?? Infinity);
  });
});

test('Redis is set up so that the gateway warns of nothing but that it has no customers yet', async () => {
  const [program, ...args] = service('redis').command ?? [];
  expect(program).toBe('redis-server');
  const redis = await startRedis({ args: args.map((arg) => arg.replace(/^\$\{REDIS_PASSWORD.*/, 'secret')) });
  onTestFinished(() => redis.stop());
  const storeUrl = redis.url.replace('redis://', 'redis://:secret@');
  const gateway = await startTestGateway({ storeUrl, upstreamUrl: 'http://127.0.0.1:1' });
  onTestFinished(() => gateway.close());
  expect((await fetch(`${gateway.ops}/readyz`)).status).toBe(200);
  const warnings = gateway.logs.filter(({ level }) => level !== 'info').map(({ msg }) => msg);
  expect(warnings).toEqual([expect.stringContaining('the store has no customers yet under tollgate')]);
});

test('the sample backend starts, and its health check notices', async () => {
  const { entrypoint = [], healthcheck, volumes } = service('sample-backend');
  // The image contains the product alone.
  expect(volumes).toEqual(['../demo:/app/demo:ro']);
  const port = String(await freePort());
  const [program = '', ...args] = entrypoint.map((arg) => arg.replace('port:3000', `port:${port}`));
  const [, checker = '', ...checks] = healthcheck?.test.map((arg) => arg.replace(':3000', `:${port}`)) ?? [];
  const check = () => spawnSync(checker, checks, { cwd: REPOSITORY }).status;
  expect(check()).not.toBe(0);
  const backend = spawn(program, args, { cwd: REPOSITORY, stdio: 'inherit' });
  onTestFinished(() => void backend.kill('SIGKILL'));
  while (check() !== 0) {
    expect(backend.exitCode).toBeNull();
    await setTimeout(50);
  }
});

test('Prometheus scrapes both gateways as the job that the alerts name', async () => {
  const { ops } = await gatewayConfig();
  const { rule_files: rules, scrape_configs: jobs } = parse(read('compose/prometheus.yml'));
  expect(jobs).toMatchObject([
    { job_name: 'tollgate', static_configs: [{ targets: GATEWAYS.map((name) => `${name}:${ops.port}`) }] },
  ]);
  expect(service('prometheus').volumes).toContain(`../config/prometheus/${rules[0]}:/etc/prometheus/${rules[0]}:ro`);
});

test('Grafana finds the dashboards, and Prometheus', () => {
  const { datasources } = parse(read('compose/grafana/datasources.yaml'));
  expect(datasources).toMatchObject([{ type: 'prometheus', url: 'http://prometheus:9090' }]);
  const { providers } = parse(read('compose/grafana/dashboards.yaml'));
  expect(service('grafana').volumes).toContain(`../config/grafana:${providers[0].options.path}:ro`);
});
