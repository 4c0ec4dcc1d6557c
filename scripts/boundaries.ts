/**
 * Checks the imports of src/ against allow-lists. `npm run check` fails for an import that is not allowed, for an allowed
 * one that no file needs any more, and for files that import each other.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * What the files of each folder may import: folders, and libraries (`npm:`). `type:` allows types alone. Lowest layer
 * first: a folder imports only from folders that are listed before it, so there are no circles.
 */
export const BOUNDARIES: Readonly<Record<string, string>> = {
  base: '',
  problems: '',
  tls: 'base',
  store: 'base',
  'store/embedded': 'base store',
  'store/redis/protocol': 'type:store npm:ioredis',
  'store/redis/connection': 'base store store/redis/protocol npm:ioredis',
  'store/redis/cluster': 'base store store/redis/connection store/redis/protocol npm:ioredis',
  'store/redis/installation': 'store store/redis/connection store/redis/protocol npm:ioredis',
  'store/redis/window': 'base store store/redis/connection store/redis/protocol npm:ioredis npm:rate-limiter-flexible',
  'store/redis/records': 'base store store/redis/connection type:store/redis/installation store/redis/protocol',
  'store/redis/notices': 'store store/redis/connection store/redis/protocol',
  'store/redis/portal': 'store store/redis/connection store/redis/protocol',
  'store/redis/usage': 'store store/redis/connection store/redis/protocol',
  'store/redis':
    'type:base store store/redis/cluster store/redis/connection store/redis/installation store/redis/notices store/redis/portal store/redis/protocol store/redis/records store/redis/usage store/redis/window npm:ioredis',
  'store/open': 'base store store/embedded store/redis',
  notices: 'base store',
  identity: 'base npm:jose',
  config: 'base identity notices store tls npm:yaml npm:zod',
  keys: 'base store',
  quota: 'base store',
  usage: 'base store',
  'upstream/http1': 'base',
  'upstream/health': 'base upstream/http1',
  upstream: 'base type:problems upstream/health upstream/http1 npm:http-proxy-middleware',
  observability: 'base notices type:quota type:store type:upstream npm:pino npm:prom-client',
  tracing:
    'base type:config type:observability type:upstream npm:@opentelemetry/api npm:@opentelemetry/exporter-trace-otlp-http npm:@opentelemetry/resources npm:@opentelemetry/sdk-trace npm:@opentelemetry/semantic-conventions',
  listener: 'base type:observability problems npm:express',
  edge: 'base type:identity keys listener type:observability problems quota store tls tracing upstream type:usage type:npm:express',
  reload: 'base config type:observability quota store',
  'admin-api': 'base keys store npm:zod',
  'portal-api': 'admin-api npm:zod',
  'pages/client': 'type:admin-api type:portal-api problems npm:htm/preact npm:preact npm:preact/hooks npm:uplot',
  'portal/client': 'type:admin-api pages/client type:portal-api npm:htm/preact npm:preact npm:preact/hooks',
  'console/client': 'admin-api pages/client npm:htm/preact npm:preact npm:preact/hooks',
  pages: 'problems npm:express',
  console: 'type:base pages npm:jose',
  admin:
    'admin-api base config console keys listener notices observability pages problems quota reload store usage npm:express npm:jose npm:zod',
  portal: 'admin admin-api base type:config keys listener pages portal-api quota store npm:express',
  ops: 'listener problems type:store type:npm:express',
  process:
    'admin base config edge identity keys listener notices observability ops pages portal quota reload store store/open tls tracing upstream usage',
  'process/workers': 'base config observability process npm:prom-client',
  'admin-client': 'admin-api npm:zod',
  cli: 'admin-api admin-client base config keys process process/workers quota store npm:@commander-js/extra-typings npm:yaml npm:zod',
};

export interface ImportStatement {
  /** Path below src/. */
  readonly file: string;
  /** The imported file below src/; undefined for a library. */
  readonly imported?: string | undefined;
  /** A folder below src/, or a library as `npm:NAME`. */
  readonly target: string;
  readonly isTypeOnly: boolean;
}

/** Returns what violates the allow-lists, one sentence each. */
export function boundaryFaults(boundaries = BOUNDARIES, statements = readImports()): string[] {
  const faults = new Set<string>();
  const unused = new Map<string, Set<string>>();
  for (const [folder, list] of Object.entries(boundaries)) {
    const allowed = new Set(list.split(' ').filter((entry) => entry !== ''));
    for (const target of [...allowed].map((entry) => entry.replace('type:', ''))) {
      if (!target.startsWith('npm:') && !unused.has(target)) faults.add(`${folder} lists ${target} of a higher layer`);
    }
    unused.set(folder, allowed);
  }
  for (const { file, target, isTypeOnly } of statements) {
    const folder = dirname(file);
    if (target === folder) continue;
    const allowed = boundaries[folder]?.split(' ');
    const entry = isTypeOnly && allowed?.includes(`type:${target}`) ? `type:${target}` : target;
    if (!allowed?.includes(entry)) faults.add(`src/${file} imports ${isTypeOnly ? 'a type of ' : ''}${target}`);
    unused.get(folder)?.delete(entry);
  }
  for (const [folder, entries] of unused) {
    for (const entry of entries) faults.add(`${folder} lists ${entry}, which no file of it imports`);
  }
  return [...faults];
}

/** Returns a sentence for each import, even of types alone, that closes a circle of files. */
export function circleFaults(statements = readImports()): string[] {
  const importsOf = Map.groupBy(statements, ({ file }) => file);
  const circles: string[] = [];
  const path: string[] = [];
  const visited = new Set<string>();
  function visit(file: string): void {
    const start = path.indexOf(file);
    if (start >= 0) circles.push([...path.slice(start), file].join(' → '));
    if (visited.has(file)) return;
    visited.add(file);
    path.push(file);
    for (const { imported } of importsOf.get(file) ?? []) if (imported !== undefined) visit(imported);
    path.pop();
  }
  for (const file of [...importsOf.keys()].sort()) visit(file);
  return circles.map((circle) => `files import each other: ${circle}`);
}

const SOURCES = fileURLToPath(new URL('../src/', import.meta.url));
const STATEMENT = /^(?:import|export)\s(?:([^;']*?)\sfrom\s)?'([^']+)'|\bimport\('([^']+)'\)/gm;

function readImports(): ImportStatement[] {
  // src/main.ts belongs to no folder.
  const files = globSync('*/**/*.ts', { cwd: SOURCES });
  return files.flatMap((file) => {
    const text = readFileSync(join(SOURCES, file), 'utf8');
    return [...text.matchAll(STATEMENT)].flatMap(([, names = '', fixed, dynamic = '']) => {
      const specifier = fixed ?? dynamic;
      if (specifier.startsWith('node:')) return [];
      const isLocal = specifier.startsWith('.');
      const imported = isLocal ? normalize(join(dirname(file), specifier)) : undefined;
      const target = imported === undefined ? `npm:${specifier}` : dirname(imported);
      return [{ file, imported, target, isTypeOnly: isTypeOnly(names) }];
    });
  });
}

/** `names`: what stands between `import` and `from`. */
function isTypeOnly(names: string): boolean {
  return names.startsWith('type ') || /^\{(?:\s*type\s[^,}]+,?)+\s*\}$/.test(names);
}
