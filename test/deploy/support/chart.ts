/** The Helm chart, rendered. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Ajv } from 'ajv';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { onPath } from '../../support/programs.ts';
import { GoTemplates } from './go-template.ts';

export const CHART = fileURLToPath(new URL('../../../deploy/helm/tollgate/', import.meta.url));
export const RELEASE = 'gate';
const NAMESPACE = 'edge';

export type Values = { readonly [name: string]: unknown };

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [name: string]: unknown;
}

/** What lies below these names and indices. @throws Error when there is nothing. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce((inner: unknown, name) => {
    const found = isContainer(inner) ? (inner as Record<string | number, unknown>)[name] : undefined;
    if (found === undefined) throw new Error(`nothing at ${path.join('.')}`);
    return found;
  }, value);
}

export function readValues(): Values {
  return parse(readFileSync(join(CHART, 'values.yaml'), 'utf8'));
}

export function readTemplates(): { readonly name: string; readonly text: string }[] {
  const folder = join(CHART, 'templates');
  return readdirSync(folder).map((name) => ({ name, text: readFileSync(join(folder, name), 'utf8') }));
}

const ajv = new Ajv({ strict: true, strictRequired: false, strictTypes: false });
const isValid = ajv.compile(JSON.parse(readFileSync(join(CHART, 'values.schema.json'), 'utf8')));

/** Returns all manifests, as `helm template` prints them where it is installed. @throws Error when values are missing. */
export function renderChart(values: Values): Manifest[] {
  const helm = onPath(['helm'], process.env);
  return readManifests(helm === undefined ? renderHere(values) : renderByHelm(helm, values));
}

function renderByHelm(helm: string, values: Values): string {
  const args = ['template', RELEASE, CHART, '--namespace', NAMESPACE, '--values', '-'];
  const { status, stdout, stderr } = spawnSync(helm, args, { encoding: 'utf8', input: stringify(values) });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

function renderHere(values: Values): string {
  const { version, appVersion } = parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8'));
  const merged = merge(readValues(), values);
  if (!isValid(merged)) throw new Error(ajv.errorsText(isValid.errors, { dataVar: '' }));
  const data = {
    Values: merged,
    Files: { Get: (name: string) => readFileSync(join(CHART, name), 'utf8') },
    Chart: { Name: 'tollgate', Version: version, AppVersion: appVersion },
    Release: { Name: RELEASE, Namespace: NAMESPACE, Service: 'Helm' },
  };
  const templates = new GoTemplates();
  const helpers = readTemplates().filter(({ name }) => name.endsWith('.tpl'));
  const others = readTemplates().filter(({ name }) => !name.endsWith('.tpl'));
  for (const { text } of helpers) templates.render(text, data);
  const rendered = others.map(({ name, text }) => ({ name, text: templates.render(text, data) }));
  return rendered.flatMap(({ name, text }) => (name.endsWith('.yaml') ? [text] : [])).join('\n---\n');
}

function readManifests(text: string): Manifest[] {
  return parseAllDocuments(text).flatMap((document) => {
    if (document.errors.length > 0) throw new Error(`${document.errors[0]?.message} in\n${text}`);
    const manifest: Manifest | null = document.toJS();
    return manifest === null ? [] : [manifest];
  });
}

/** Mappings are merged, null removes, all else replaces. */
function merge(defaults: Values, given: Values): Values {
  const merged: Record<string, unknown> = { ...defaults };
  for (const [name, value] of Object.entries(given)) {
    const before = merged[name];
    if (value === null) delete merged[name];
    else merged[name] = isMapping(before) && isMapping(value) ? merge(before, value) : value;
  }
  return merged;
}

function isMapping(value: unknown): value is Values {
  return isContainer(value) && !Array.isArray(value);
}

function isContainer(value: unknown): value is object {
  return value !== null && typeof value === 'object';
}
