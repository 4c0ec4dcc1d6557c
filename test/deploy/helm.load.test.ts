/** The Helm chart: what it renders fits together, and fits the gateway. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { loadConfig } from '../../src/config/load.ts';
import { EMBEDDED_STORE, startTestGateway } from '../support/gateway.ts';
import {
  at,
  CHART,
  type Manifest,
  RELEASE,
  readTemplates,
  readValues,
  renderChart,
  type Values,
} from './support/chart.ts';
import { REPOSITORY, readCommand, readInstruction } from './support/dockerfile.ts';
import { ALL, CHECK, LEAST, PORTAL, RENAMED, SECRETS, VARIANTS } from './support/value-sets.ts';

function manifest(kind: string, values: Values = SECRETS): Manifest {
  const found = renderChart(values).find((each) => each.kind === kind);
  if (found === undefined) throw new Error(`no ${kind} is rendered`);
  return found;
}

const isHook = ({ metadata }: Manifest) => metadata.annotations?.['helm.sh/hook'] !== undefined;

const container = (values?: Values) => at(manifest('Deployment', values), 'spec', 'template', 'spec', 'containers', 0);

/** The configuration file of the chart, with the mounted secrets as files of this test. */
function writeConfig(values: Values): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-chart-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const secrets = join(folder, 'secrets');
  mkdirSync(secrets);
  const rendered = renderChart(values).find(({ kind }) => kind === 'Secret');
  const entries = rendered ? at(rendered, 'stringData') : { 'redis-url': 'redis://redis:6379', 'admin-token': 'token' };
  for (const [name, text] of Object.entries(entries as Record<string, string>))
    writeFileSync(join(secrets, name), text);
  const file = join(folder, 'gateway.yaml');
  const text = String(at(manifest('ConfigMap', values), 'data', 'gateway.yaml'));
  writeFileSync(file, text.replaceAll('/etc/tollgate-secrets', secrets));
  return file;
}

describe.each(VARIANTS)('the chart with %s', (_, values) => {
  test('puts a configuration into its pods that the gateway takes', async () => {
    const config = await loadConfig(writeConfig(values), {});
    expect(config.store.url).toMatch(/^redis:/);
    expect(config.admin === undefined).toBe(values === LEAST);
  });

  test('gives a pod longer than its shutdown takes before it is killed', async () => {
    const { shutdown } = await loadConfig(writeConfig(values), {});
    const seconds = at(manifest('Deployment', values), 'spec', 'template', 'spec', 'terminationGracePeriodSeconds');
    expect(Number(seconds) * 1000).toBeGreaterThanOrEqual(shutdown.notReadyMs + shutdown.drainMs + 4000);
  });

  test('opens the ports that the configuration listens on', async () => {
    const { check, listen, ops, portal } = await loadConfig(writeConfig(values), {});
    expect(at(container(values), 'ports')).toStrictEqual([
      { name: 'public', containerPort: listen.port },
      { name: 'ops', containerPort: ops.port },
      ...(portal ? [{ name: 'portal', containerPort: portal.port }] : []),
      ...(check ? [{ name: 'check', containerPort: check.port }] : []),
    ]);
  });

  test('selects its own pods everywhere, by labels that no upgrade changes', () => {
    const manifests = renderChart(values).filter((each) => !isHook(each));
    const pod = at(manifest('Deployment', values), 'spec', 'template', 'metadata', 'labels');
    const selector = { 'app.kubernetes.io/name': 'tollgate', 'app.kubernetes.io/instance': RELEASE };
    expect(pod).toMatchObject(selector);
    for (const each of manifests) {
      expect(each.metadata.name).toMatch(
        values === RENAMED ? /^edge/ : /^gate(-ops|-portal|-check|-dashboard|-more)?$/,
      );
      if (each.kind === 'Service') expect(at(each, 'spec', 'selector')).toStrictEqual(selector);
      if (each.kind === 'Deployment' || each.kind === 'PodDisruptionBudget')
        expect(at(each, 'spec', 'selector', 'matchLabels')).toStrictEqual(selector);
      if (each.kind === 'NetworkPolicy') expect(at(each, 'spec', 'podSelector', 'matchLabels')).toStrictEqual(selector);
      if (each.kind === 'ServiceMonitor') {
        const services = manifests.filter(({ kind }) => kind === 'Service').map(({ metadata }) => metadata);
        const monitored = Object.entries(at(each, 'spec', 'selector', 'matchLabels') as Record<string, string>);
        const matching = services.filter(({ labels }) => monitored.every(([name, value]) => labels[name] === value));
        expect(matching.map(({ name }) => name)).toStrictEqual([`${RELEASE}-ops`]);
      }
    }
  });

  test('has no hook whose pod a service would send requests to', () => {
    const hooks = renderChart(values).filter(isHook);
    expect(hooks.map(({ kind }) => kind)).toContain('Pod');
    for (const hook of hooks) {
      const pod = hook.kind === 'Job' ? (at(hook, 'spec', 'template') as Manifest) : hook;
      expect(pod.metadata.labels['app.kubernetes.io/name']).toMatch(/^tollgate-(preflight|test)$/);
    }
  });
});

test('the plans in the values replace the default plans', async () => {
  const plans = { basic: { requests_per_hour: 7 } };
  const config = await loadConfig(writeConfig({ ...SECRETS, config: { plans } }), {});
  expect([...config.plans]).toEqual([['basic', { requestsPerHour: 7 }]]);
  expect([...(await loadConfig(writeConfig(SECRETS), {})).plans.keys()]).toContain('enterprise');
});

test('the probes request paths of the ops listener', async () => {
  const store = await EMBEDDED_STORE.start();
  onTestFinished(() => store.close());
  const gateway = await startTestGateway({ storeUrl: store.url, upstreamUrl: 'http://127.0.0.1:1' });
  onTestFinished(() => gateway.close());
  for (const probe of ['livenessProbe', 'readinessProbe']) {
    const { path, port } = at(container(), probe, 'httpGet') as { path: string; port: string };
    expect(port).toBe('ops');
    expect((await fetch(gateway.ops + path)).status).toBe(200);
  }
  const endpoint = at(manifest('ServiceMonitor', ALL), 'spec', 'endpoints', 0);
  expect((await fetch(`${gateway.ops}${at(endpoint, 'path')}`)).status).toBe(200);
});

test('the container starts the gateway with the file that is mounted, as the image would', () => {
  const args = at(container(), 'args') as string[];
  const [command, option] = readCommand('CMD');
  expect(args.slice(0, 2)).toStrictEqual([command, option]);
  expect(at(container(), 'volumeMounts', 0)).toMatchObject({ name: 'config', mountPath: '/etc/tollgate' });
  expect(args[2]).toBe(`/etc/tollgate/${Object.keys(at(manifest('ConfigMap'), 'data') as object)[0]}`);
});

test('the preflight checks the file that the gateway gets, with the same variables, files and user', () => {
  const named = (kind: string) => renderChart(ALL).filter((each) => each.kind === kind);
  const [preflightMap, map] = [true, false].map((hook) =>
    named('ConfigMap').find((each) => isHook(each) === hook && at(each, 'data', 'gateway.yaml') !== undefined),
  );
  expect(preflightMap?.data).toStrictEqual(map?.data);
  const [one, other] = named('Secret');
  expect(at(one, 'stringData')).toStrictEqual(at(other, 'stringData'));

  const job = at(manifest('Job', ALL), 'spec', 'template', 'spec');
  const check = at(job, 'containers', 0) as Values;
  const gateway = container(ALL) as Values;
  expect(check.args).toStrictEqual(['check-config', at(gateway, 'args', 2), '--strict', '--connect']);
  for (const name of ['image', 'env', 'envFrom', 'volumeMounts', 'securityContext'])
    expect(check[name]).toStrictEqual(gateway[name]);
  const names = (at(job, 'volumes') as Values[]).map(({ name }) => name);
  expect(names).toStrictEqual(['config', 'secrets', 'tls']);
});

test('helm test passes where a gateway is ready, and fails where none is', async () => {
  const store = await EMBEDDED_STORE.start();
  onTestFinished(() => store.close());
  const gateway = await startTestGateway({ storeUrl: store.url, upstreamUrl: 'http://127.0.0.1:1' });
  onTestFinished(() => gateway.close());
  const pod = at(manifest('Pod'), 'spec', 'containers', 0) as { command: string[]; args: string[] };
  const [program = '', ...options] = pod.command;
  const run = async (ops: string) => {
    const script = pod.args.map((text) =>
      text.replace('http://gate-ops:8081', ops).replace('http://gate:80', gateway.public),
    );
    const child = spawn(program, [...options, ...script], { stdio: 'ignore' });
    return (await once(child, 'exit'))[0];
  };
  expect(await run(gateway.ops)).toBe(0);
  expect(await run(gateway.public)).toBe(1);
});

test('a network policy that restricts what goes out leaves DNS, and one that does not says nothing of it', () => {
  const { egress, policyTypes } = at(manifest('NetworkPolicy', ALL), 'spec') as {
    egress: object[];
    policyTypes: string[];
  };
  expect(policyTypes).toStrictEqual(['Ingress', 'Egress']);
  expect(egress).toHaveLength(2);
  expect(at(egress, 0, 'ports', 0)).toStrictEqual({ port: 53, protocol: 'UDP' });
  expect(at(manifest('NetworkPolicy', RENAMED), 'spec', 'policyTypes')).toStrictEqual(['Ingress']);
});

test('alerts link the runbook that the values name', () => {
  const runbookUrl = 'https://wiki.example/tollgate-operations';
  const rules = renderChart({ ...ALL, prometheusRule: { enabled: true, runbookUrl } }).find(
    ({ kind }) => kind === 'PrometheusRule',
  );
  const links = [...JSON.stringify(rules).matchAll(/"runbook_url":"([^"#]*)#tollgate/g)].map(([, page]) => page);
  expect(links.length).toBeGreaterThan(10);
  expect(new Set(links)).toStrictEqual(new Set([runbookUrl]));
});

test('no pod gets variables of the services of its namespace', () => {
  const pods = renderChart(ALL).filter(({ kind }) => kind === 'Deployment' || kind === 'Job');
  expect(pods.length).toBeGreaterThan(1);
  const specs = pods.map((each) => at(each, 'spec', 'template', 'spec'));
  for (const spec of specs) expect(spec).toMatchObject({ enableServiceLinks: false });
});

test('the alerts and the dashboard are the shipped ones', () => {
  const shipped = (file: string) => readFileSync(join(REPOSITORY, 'config', file), 'utf8');
  expect(at(manifest('PrometheusRule', ALL), 'spec')).toStrictEqual(parse(shipped('prometheus/alerts.yaml')));
  const dashboard = renderChart(ALL).find(({ metadata }) => metadata.name === `${RELEASE}-dashboard`);
  expect(JSON.parse(String(at(dashboard, 'data', 'tollgate.json')))).toStrictEqual(
    JSON.parse(shipped('grafana/tollgate.json')),
  );
});

test('ingress and route lead to the service, by a port that it has', () => {
  const service = renderChart(ALL).find(({ kind, metadata }) => kind === 'Service' && metadata.name === RELEASE);
  const port = at(service, 'spec', 'ports', 0) as { name: string; port: number };
  const rules = at(manifest('Ingress', ALL), 'spec', 'rules') as Values[];
  expect(rules.map(({ host }) => host)).toStrictEqual(['api.example.com', 'api.example.org']);
  for (const rule of rules)
    expect(at(rule, 'http', 'paths', 0, 'backend', 'service')).toStrictEqual({
      name: RELEASE,
      port: { name: port.name },
    });
  expect(at(manifest('HTTPRoute', ALL), 'spec', 'rules', 0, 'backendRefs')).toStrictEqual([
    { name: RELEASE, port: port.port },
  ]);
});

test('the portal has a port, a service and an ingress of its own, and the other services do not lead to it', () => {
  const manifests = renderChart(PORTAL);
  const named = (kind: string) =>
    manifests.find((each) => each.kind === kind && each.metadata.name === `${RELEASE}-portal`);
  const container = at(manifest('Deployment', PORTAL), 'spec', 'template', 'spec', 'containers', 0);
  expect(at(container, 'ports')).toContainEqual({ name: 'portal', containerPort: 9083 });
  expect(at(named('Service'), 'spec', 'ports')).toStrictEqual([{ name: 'http', port: 80, targetPort: 'portal' }]);
  const [rule] = at(named('Ingress'), 'spec', 'rules') as Values[];
  expect(rule?.host).toBe('keys.example.com');
  expect(at(rule, 'http', 'paths', 0, 'backend', 'service')).toStrictEqual({
    name: `${RELEASE}-portal`,
    port: { name: 'http' },
  });
  expect(at(manifest('NetworkPolicy', PORTAL), 'spec', 'ingress')).toContainEqual({
    ports: [{ port: 'portal' }],
    from: [{ namespaceSelector: {} }],
  });
  expect(renderChart(ALL).some(({ metadata }) => metadata.name.endsWith('-portal'))).toBe(false);
});

test('the check listener has a port and a service of its own, and its token is a secret', () => {
  const service = renderChart(CHECK).find(
    (each) => each.kind === 'Service' && each.metadata.name === `${RELEASE}-check`,
  );
  expect(at(service, 'spec', 'ports')).toStrictEqual([{ name: 'http', port: 9084, targetPort: 'check' }]);
  expect(at(manifest('Secret', CHECK), 'stringData')).toMatchObject({ 'check-token': 'check-token-of-the-chart' });
  expect(at(manifest('NetworkPolicy', CHECK), 'spec', 'ingress')).toContainEqual({
    ports: [{ port: 'check' }],
    from: [{ namespaceSelector: {} }],
  });
  expect(renderChart(ALL).some(({ metadata }) => metadata.name.endsWith('-check'))).toBe(false);
});

test('what mounts the configuration mounts its folder: a subPath would keep its first contents', () => {
  for (const mount of at(container(), 'volumeMounts') as object[]) expect(mount).not.toHaveProperty('subPath');
});

test('a pod runs as a user that can write nothing and gain no privileges', () => {
  expect(at(manifest('Deployment'), 'spec', 'template', 'spec', 'securityContext')).toMatchObject({
    runAsNonRoot: true,
    runAsUser: Number(readInstruction('USER').split(':')[0]),
    seccompProfile: { type: 'RuntimeDefault' },
  });
  expect(at(container(), 'securityContext')).toStrictEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  });
});

test('secrets are in the Secret only', () => {
  const others = renderChart(ALL).filter(({ kind }) => kind !== 'Secret');
  expect(JSON.stringify(others)).not.toMatch(/redis:\/\/:secret|choose-a-secret/);
});

test('a Secret that exists is mounted, and none is made', () => {
  expect(renderChart(LEAST).map(({ kind }) => kind)).not.toContain('Secret');
  expect(at(manifest('Deployment', LEAST), 'spec', 'template', 'spec', 'volumes', 1, 'secret')).toStrictEqual({
    secretName: 'mine',
  });
});

test.each([
  ['redisUrl', { secrets: { adminToken: 'token' } }],
  ['adminToken', { secrets: { redisUrl: 'redis://redis' } }],
])('without secrets.%s nothing is rendered, and the message says what is missing', (name, values) => {
  expect(() => renderChart(values)).toThrow(`secrets.${name}, or secrets.existing`);
});

test('with autoscaling the number of pods is the autoscaler’s', () => {
  expect(at(manifest('Deployment'), 'spec')).toHaveProperty('replicas', 2);
  expect(at(manifest('Deployment', ALL), 'spec')).not.toHaveProperty('replicas');
  expect(at(manifest('HorizontalPodAutoscaler', ALL), 'spec', 'scaleTargetRef', 'name')).toBe(RELEASE);
});

test('the gateways are monitored as the job that the alerts name', () => {
  expect(at(manifest('ServiceMonitor', ALL), 'spec', 'endpoints', 0, 'relabelings')).toContainEqual({
    targetLabel: 'job',
    replacement: 'tollgate',
  });
});

test('values.yaml has every value that a template reads, and no other', () => {
  const text = readTemplates().map((template) => template.text);
  const read = new Set(text.join('').match(/(?<=\.Values\.)[\w.]+/g));
  const known = paths(readValues()).filter((path) => !path.startsWith('config.'));
  expect([...read].filter((path) => !path.startsWith('config')).toSorted()).toStrictEqual(
    [...new Set(known.map((path) => [...read].find((name) => path === name || path.startsWith(`${name}.`)) ?? path))]
      .filter((path) => path !== 'config')
      .toSorted(),
  );
  for (const path of read) expect(() => at(readValues(), ...path.split('.')), `${path} in ${CHART}`).not.toThrow();
});

/** Of all leaves, and of empty mappings and lists. */
function paths(values: Values, prefix = ''): string[] {
  return Object.entries(values).flatMap(([name, value]) => {
    const isBranch = value !== null && typeof value === 'object' && !Array.isArray(value);
    const inner = isBranch ? paths(value as Values, `${prefix}${name}.`) : [];
    return inner.length > 0 ? inner : [`${prefix}${name}`];
  });
}
