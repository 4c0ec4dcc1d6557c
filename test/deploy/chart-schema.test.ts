/** values.schema.json, by which Helm refuses values, and the types of Kubernetes, by which a cluster refuses manifests. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { CHART, type Manifest, readValues, renderChart, type Values } from './support/chart.ts';
import { REPOSITORY } from './support/dockerfile.ts';
import { SECRETS, VARIANTS } from './support/value-sets.ts';

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: unknown;
}

describe('values.schema.json', () => {
  test('knows exactly the values of values.yaml', () => {
    const { properties: { global: _, ...properties } = {} } = JSON.parse(
      readFileSync(join(CHART, 'values.schema.json'), 'utf8'),
    );
    expectSameNames({ additionalProperties: false, properties }, readValues());
  });

  test.each([
    ['an unknown value', { replicaCount: 3 }, ' must NOT have additional properties'],
    ['an unknown value of a section', { image: { name: 'tollgate' } }, '/image must NOT have additional properties'],
    ['text for a number', { replicas: 'three' }, '/replicas must be integer'],
    ['a digest that is none', { image: { digest: 'latest' } }, '/image/digest must match pattern'],
    ['an ingress without a host', { ingress: { enabled: true } }, '/ingress/hosts must NOT have fewer than 1 items'],
    ['a route without a gateway', { httpRoute: { enabled: true } }, '/httpRoute/parentRefs must NOT have fewer'],
    ['a name that leaves no room for endings', { fullnameOverride: 'a'.repeat(54) }, '/fullnameOverride must NOT'],
    ['a mapping for a list', { extraEnv: { A: 'b' } }, '/extraEnv must be array'],
  ])('refuses %s', (_, values: Values, message) => {
    expect(() => renderChart({ ...SECRETS, ...values })).toThrow(message);
  });
});

function expectSameNames(schema: Schema, values: Values, path = ''): void {
  const isClosed = schema.additionalProperties === false && !path.endsWith('Probe');
  if (!isClosed) return;
  expect(Object.keys(schema.properties ?? {}).toSorted(), path).toStrictEqual(Object.keys(values).toSorted());
  for (const [name, inner] of Object.entries(schema.properties ?? {}))
    expectSameNames(inner, values[name] as Values, `${path}/${name}`);
}

const PACKAGES: Readonly<Record<string, string>> = {
  'monitoring.coreos.com': '@kubernetes-models/prometheus-operator',
  'gateway.networking.k8s.io': '@kubernetes-models/gateway-api',
};

/** The manifest as a literal of its type: TypeScript reports unknown fields too, which Kubernetes drops in silence. */
function declareTyped(manifest: Manifest, index: number): string {
  const { apiVersion, kind } = manifest;
  const from = `${PACKAGES[apiVersion.split('/')[0] ?? ''] ?? 'kubernetes-models'}/${apiVersion}`;
  return `export const ${kind}${index}: import('${from}').I${kind} = ${JSON.stringify(manifest)};\n`;
}

/** Returns what the TypeScript compiler says of these manifests; empty if it accepts them. */
function checkTypes(manifests: readonly Manifest[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-manifests-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  symlinkSync(join(REPOSITORY, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'manifests.ts'), manifests.map(declareTyped).join(''));
  const options = { strict: true, noEmit: true, module: 'nodenext', skipLibCheck: true, types: [] };
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files: ['manifests.ts'] }));
  const tsc = join(REPOSITORY, 'node_modules/.bin/tsc');
  return spawnSync(tsc, ['-p', folder], { encoding: 'utf8', cwd: folder }).stdout;
}

describe('the manifests', () => {
  test('have the fields and types of Kubernetes, with every set of values', () => {
    expect(checkTypes(VARIANTS.flatMap(([, values]) => renderChart(values)))).toBe('');
  });

  test('with a field that Kubernetes does not know, of the wrong type, or without one that it needs, are found', () => {
    const metadata = { name: 'a', labels: {} };
    const faults = checkTypes([
      { apiVersion: 'v1', kind: 'Service', metadata, spec: { port: [] } },
      { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: 'one' } },
      { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec: {} },
    ]);
    expect(faults.match(/error TS/g)).toHaveLength(3);
  });
});
