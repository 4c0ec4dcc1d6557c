/**
 * Checks the imports of src/ against allow-lists. `npm run check` fails for an import that is not allowed, for an allowed
 * one that no file needs any more, and for files that import each other. A Lua file that a module loads counts as
 * imported.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * What the files of each room may import: rooms, and libraries (`npm:`). `type:` allows types alone. A room is a folder
 * of src/ with all folders in it; a wing of a room that promises more has a list of its own. Lowest floor first: a room
 * imports only from rooms that are listed before it, so there are no circles.
 */
export const BOUNDARIES: Readonly<Record<string, string>> = {
  base: '',
  formats: '',
  store: 'base formats npm:ioredis npm:rate-limiter-flexible',
  http: 'base formats npm:express',
  api: 'type:base formats npm:zod',
  customers: 'base formats store',
  'upstream/http1': 'base formats',
  upstream: 'base formats type:http upstream/http1 npm:http-proxy-middleware npm:jose',
  config: 'base formats http npm:yaml npm:zod',
  'pages/client': 'http type:api npm:htm/preact npm:preact npm:preact/hooks npm:uplot',
  'pages/console': 'api pages/client npm:htm/preact type:npm:preact npm:preact/hooks',
  'pages/portal': 'formats type:api pages/client npm:htm/preact type:npm:preact npm:preact/hooks',
  pages: 'http npm:express',
  observability:
    'base formats type:store type:http type:customers type:upstream npm:@opentelemetry/api npm:@opentelemetry/exporter-trace-otlp-http npm:@opentelemetry/resources npm:@opentelemetry/sdk-trace npm:@opentelemetry/semantic-conventions npm:pino npm:prom-client',
  edge: 'base formats store http customers upstream observability type:npm:express',
  'control/frame': 'base formats store http api customers config pages observability npm:express npm:zod',
  control:
    'base formats store http api customers config pages observability control/frame type:npm:express npm:jose npm:zod',
  process: 'base formats store http customers upstream config pages observability edge control npm:prom-client',
  cli: 'base formats store api customers config process npm:@commander-js/extra-typings npm:yaml npm:zod',
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
  for (const { file, target: folder, isTypeOnly } of statements) {
    const room = roomOf(dirname(file), boundaries);
    const target = folder.startsWith('npm:') ? folder : roomOf(folder, boundaries);
    if (target === room) continue;
    const allowed = boundaries[room]?.split(' ');
    const entry = isTypeOnly && allowed?.includes(`type:${target}`) ? `type:${target}` : target;
    if (!allowed?.includes(entry)) faults.add(`src/${file} imports ${isTypeOnly ? 'a type of ' : ''}${target}`);
    unused.get(room)?.delete(entry);
  }
  for (const [folder, entries] of unused) {
    for (const entry of entries) faults.add(`${folder} lists ${entry}, which no file of it imports`);
  }
  return [...faults];
}

/** Returns the room or the listed wing that a folder is in; a folder without either stands for itself. */
function roomOf(folder: string, boundaries: Readonly<Record<string, string>>): string {
  for (let place = folder; place !== '.'; place = dirname(place)) if (boundaries[place] !== undefined) return place;
  return folder;
}

/** Returns a sentence for each import, even of types alone, that closes a circle of files. */
export function circleFaults(statements = readImports()): string[] {
  const byFile = Map.groupBy(statements, ({ file }) => file);
  const circles: string[] = [];
  const path: string[] = [];
  const visited = new Set<string>();
  function visit(file: string): void {
    const start = path.indexOf(file);
    if (start >= 0) circles.push([...path.slice(start), file].join(' → '));
    if (visited.has(file)) return;
    visited.add(file);
    path.push(file);
    for (const { imported } of byFile.get(file) ?? []) if (imported !== undefined) visit(imported);
    path.pop();
  }
  for (const file of [...byFile.keys()].sort()) visit(file);
  return circles.map((circle) => `files import each other: ${circle}`);
}

const SOURCES = fileURLToPath(new URL('../src/', import.meta.url));
const STATEMENT = /^(?:import|export)\s(?:([^;']*?)\sfrom\s)?'([^']+)'|\bimport\('([^']+)'\)/gm;
/** The name of a Lua file, which modules load by a path relative to themselves. */
const SCRIPT = /'([\w./-]+\.lua)'/g;

function readImports(): ImportStatement[] {
  // src/main.ts belongs to no folder.
  const files = globSync('*/**/*.ts', { cwd: SOURCES });
  return files.flatMap((file) => {
    return importsOf(file, readFileSync(join(SOURCES, file), 'utf8'));
  });
}

/** Returns the imports of a file below src/ with this text; those of Node.js's own modules are left out. */
export function importsOf(file: string, text: string): ImportStatement[] {
  const modules = [...text.matchAll(STATEMENT)].map(([, names = '', fixed, dynamic = '']) => {
    return { specifier: fixed ?? dynamic, isTypeOnly: isTypeOnly(names) };
  });
  const scripts = [...text.matchAll(SCRIPT)].map(([, path = '']) => ({ specifier: `./${path}`, isTypeOnly: false }));
  return [...modules, ...scripts].flatMap(({ specifier, isTypeOnly }) => {
    if (specifier.startsWith('node:')) return [];
    const imported = specifier.startsWith('.') ? normalize(join(dirname(file), specifier)) : undefined;
    return [{ file, imported, target: imported === undefined ? `npm:${specifier}` : dirname(imported), isTypeOnly }];
  });
}

/** `names`: what stands between `import` and `from`. */
function isTypeOnly(names: string): boolean {
  return names.startsWith('type ') || /^\{(?:\s*type\s[^,}]+,?)+\s*\}$/.test(names);
}
