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
  formats: '',
  'http/problems': '',
  'api/admin': 'type:base formats npm:zod',
  'http/listener': 'base formats http/problems npm:express',
  'http/tls': 'base',
  pages: 'http/problems npm:express',
  store: 'base formats',
  'store/redis/protocol': 'type:formats npm:ioredis',
  'upstream/http1': 'base formats',
  'upstream/identity': 'base formats npm:jose',
  'api/client': 'api/admin npm:zod',
  'api/portal': 'api/admin npm:zod',
  config: 'base formats http/tls npm:yaml npm:zod',
  'control/ops': 'http/listener http/problems type:store type:npm:express',
  'customers/keys': 'base formats store',
  'customers/notices': 'base formats store',
  'customers/quota': 'base store',
  'customers/usage': 'base store',
  'store/embedded': 'type:base store',
  'store/redis/connection': 'base type:formats store store/redis/protocol npm:ioredis',
  'upstream/health': 'base upstream/http1',
  'pages/client': 'type:api/admin type:api/portal http/problems npm:htm/preact npm:preact npm:preact/hooks npm:uplot',
  'store/redis/cluster': 'base type:formats store store/redis/connection store/redis/protocol npm:ioredis',
  'store/redis/installation': 'store store/redis/connection store/redis/protocol npm:ioredis',
  'store/redis/notices': 'store store/redis/connection store/redis/protocol',
  'store/redis/portal': 'formats store store/redis/connection type:store/redis/protocol',
  'store/redis/usage': 'store store/redis/connection type:store/redis/protocol',
  'store/redis/window': 'base store store/redis/connection store/redis/protocol npm:ioredis npm:rate-limiter-flexible',
  upstream: 'base formats type:http/problems upstream/health upstream/http1 npm:http-proxy-middleware',
  observability:
    'base type:customers/notices type:customers/quota formats type:http/listener type:store type:upstream npm:pino npm:prom-client',
  'pages/console': 'api/admin pages/client npm:htm/preact type:npm:preact npm:preact/hooks',
  'pages/portal': 'type:api/admin type:api/portal pages/client npm:htm/preact type:npm:preact npm:preact/hooks',
  'store/redis/records': 'base formats store store/redis/connection type:store/redis/installation store/redis/protocol',
  'control/frame':
    'api/admin base config customers/notices formats http/listener http/problems observability pages store npm:express npm:zod',
  'control/reload': 'base config customers/quota type:observability store',
  'observability/tracing':
    'base formats type:observability type:upstream npm:@opentelemetry/api npm:@opentelemetry/exporter-trace-otlp-http npm:@opentelemetry/resources npm:@opentelemetry/sdk-trace npm:@opentelemetry/semantic-conventions',
  'store/redis':
    'type:base formats store store/redis/cluster store/redis/connection store/redis/installation store/redis/notices store/redis/portal store/redis/protocol store/redis/records store/redis/usage store/redis/window npm:ioredis',
  'control/admin':
    'api/admin base config control/frame control/reload customers/keys customers/notices customers/quota customers/usage formats http/listener http/problems observability pages store type:npm:express npm:jose npm:zod',
  edge: 'base type:customers/keys customers/quota type:customers/usage formats http/listener http/problems http/tls type:observability observability/tracing store upstream type:upstream/identity type:npm:express',
  'store/open': 'base formats type:store store/embedded store/redis',
  'control/portal':
    'api/admin api/portal base type:config control/admin control/frame customers/keys customers/quota formats http/listener pages store type:npm:express',
  process:
    'base config control/admin control/ops control/portal control/reload customers/keys customers/notices customers/quota customers/usage edge formats http/listener http/tls observability observability/tracing pages store store/open upstream upstream/identity',
  'process/workers': 'base config observability process npm:prom-client',
  cli: 'api/admin api/client base config customers/keys customers/quota formats process process/workers store npm:@commander-js/extra-typings npm:yaml npm:zod',
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
