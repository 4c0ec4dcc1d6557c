/**
 * Keeps reference tables and printed output in the pages and in the chart's README, the JSON Schema of the configuration,
 * and most of the OpenAPI files of the admin API and the portal in step with the code: `--write` rewrites them, `--check` fails when one
 * is stale. What is generated in a page stands between `<!-- generated: NAME -->` and `<!-- end generated -->` (in YAML:
 * `# generated: NAME` and `# end generated`); the prose around it is free. Also checks the imports between folders, and
 * the links.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { loadConfig } from '../src/config/load.ts';
import { ConfigError } from '../src/config/problems.ts';
import { PROBLEMS } from '../src/http/problems/table.ts';
import { METRICS, type MetricDefinition } from '../src/observability/metric-definitions.ts';
import { adminSections } from './admin-openapi.ts';
import { BOUNDARIES, boundaryFaults, circleFaults } from './boundaries.ts';
import { chartValues } from './chart-values.ts';
import { configReference } from './config-reference.ts';
import { editorSchema } from './editor-schema.ts';
import { evidenceRows, guaranteeFaults, guaranteeRows, readEvidence, staleParts, testRows } from './guarantees.ts';
import { linkFaults } from './links.ts';
import { pictureWarnings } from './pictures.ts';
import { portalSections } from './portal-openapi.ts';

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

function errorTable(): string {
  return table(
    ['code', 'status', 'title', 'when', 'what the client does'],
    Object.entries(PROBLEMS).map(([code, { status, title, when, remedy }]) => {
      return [`[\`${code}\`](#${code})`, String(status), title, when, remedy];
    }),
  );
}

function configTable(): string {
  return table(
    ['key', 'type', 'default', 'meaning', 'changes by'],
    configReference().map(({ path, type, default: value, description, takesEffect }) => {
      return [`\`${path}\``, type, value, description, takesEffect];
    }),
  );
}

function metricTable(): string {
  const alternatives = new Intl.ListFormat('en-GB', { type: 'disjunction' });
  const listed = (values: Readonly<Record<string, string>>) =>
    alternatives.format(Object.entries(values).map(([value, why]) => (why ? `\`${value}\` (${why})` : `\`${value}\``)));
  return table(
    ['name', 'type', 'meaning', 'labels', 'buckets', 'across workers'],
    Object.entries<MetricDefinition>(METRICS).map(([name, { type, help, labels, buckets, acrossWorkers }]) => [
      `\`${name}\``,
      type,
      help,
      Object.entries(labels)
        .map(([label, values]) => `\`${label}\`: ${typeof values === 'string' ? values : listed(values)}`)
        .join('; '),
      buckets?.join(', ') ?? '',
      acrossWorkers,
    ]),
  );
}

function importsTable(): string {
  const named = (entries: readonly string[]) =>
    entries
      .map((entry) => entry.replace(/^(type:)?(?:npm:)?(.*)$/, (_, type, name) => `\`${name}\`${type ? '*' : ''}`))
      .join(', ') || '–';
  return table(
    ['room or wing', 'imports from', 'and libraries'],
    Object.entries(BOUNDARIES).map(([folder, list]) => {
      const { folders = [], libraries = [] } = Object.groupBy(list.split(' ').filter(Boolean), (entry) =>
        entry.includes('npm:') ? 'libraries' : 'folders',
      );
      return [`\`${folder}\``, named(folders), named(libraries)];
    }),
  );
}

async function checkConfigSample(): Promise<string> {
  const file = 'config/gateway.yaml';
  const faults = await loadConfig(file, {}).catch((error: unknown) => error);
  if (!(faults instanceof ConfigError)) throw new Error(`${file} without any variable is not refused`);
  return ['```console', `$ npm run -s tollgate -- check-config ${file}`, ...faults.problems, '```'].join('\n');
}

interface Section {
  readonly name: string;
  readonly file: string;
  readonly make: () => string | Promise<string>;
}

function openApi(file: string, sections: Readonly<Record<string, string>>): Section[] {
  return Object.entries(sections).map(([name, yaml]) => ({ name, file, make: () => yaml }));
}

const GENERATED: readonly Section[] = [
  { name: 'errors', file: 'docs/errors.md', make: errorTable },
  { name: 'configuration', file: 'docs/configuration.md', make: configTable },
  { name: 'metrics', file: 'docs/metrics.md', make: metricTable },
  { name: 'check-config', file: 'README.md', make: checkConfigSample },
  ...openApi('docs/openapi/admin.yaml', adminSections()),
  ...openApi('docs/openapi/portal.yaml', portalSections()),
  { name: 'imports', file: 'docs/dev/architecture.md', make: importsTable },
  {
    name: 'guarantees',
    file: 'docs/guarantees.md',
    make: () => table(['promise', 'bound', 'what breaks it'], guaranteeRows()),
  },
  {
    name: 'tests of the promises',
    file: 'docs/dev/evidence.md',
    make: () => table(['promise', 'shown by', 'last release run'], testRows()),
  },
  {
    name: 'evidence',
    file: 'docs/dev/evidence.md',
    make: () => table(['what', 'command', 'last release run'], evidenceRows()),
  },
  {
    name: 'over-admission',
    file: 'docs/guarantees.md',
    make: () => readEvidence().overAdmission ?? 'Not run yet.',
  },
  {
    name: 'chart-values',
    file: 'deploy/helm/tollgate/README.md',
    make: () => table(['value', 'default', 'meaning'], chartValues()),
  },
];

const write = process.argv.includes('--write');
let stale = 0;

function keep(file: string, fresh: string): void {
  const url = new URL(`../${file}`, import.meta.url);
  if (existsSync(url) && readFileSync(url, 'utf8') === fresh) return;
  if (write) writeFileSync(url, fresh);
  else {
    stale++;
    console.error(`${file} is stale: run "npm run docs" and commit the result`);
  }
}

for (const { name, file, make } of GENERATED) {
  const text = readFileSync(new URL(`../${file}`, import.meta.url), 'utf8');
  const isYaml = file.endsWith('.yaml');
  const begin = isYaml ? `# generated: ${name}\n` : `<!-- generated: ${name} -->\n`;
  const end = isYaml ? '# end generated' : '<!-- end generated -->';
  const beginsAt = text.indexOf(begin) + begin.length;
  const endsAt = text.indexOf(end, beginsAt);
  if (!text.includes(begin) || endsAt === -1) throw new Error(`${file} has no place for the table "${name}"`);
  const indentedEnd = /[ ]*$/.exec(text.slice(0, endsAt))?.[0] + text.slice(endsAt);
  keep(file, `${text.slice(0, beginsAt)}${await make()}\n${indentedEnd}`);
}
keep('config/gateway.schema.json', `${JSON.stringify(editorSchema(), null, 2)}\n`);
const faults = [
  ...[...boundaryFaults(), ...circleFaults()].map((fault) => `${fault}: see scripts/boundaries.ts`),
  ...linkFaults(),
  ...guaranteeFaults(),
];
for (const warning of pictureWarnings()) console.error(`warning: ${warning}`);
for (const fault of faults) console.error(fault);
const older = write ? [] : staleParts();
if (older.length > 0) {
  console.error(
    `warning: the quota or a store changed after these parts of "npm run lab -- evidence" ran: ${older.join(', ')}`,
  );
}
process.exitCode = stale + faults.length > 0 ? 1 : 0;
