/** Which folders of src/ import from which others, read from the import statements. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const SOURCES = fileURLToPath(new URL('../src/', import.meta.url));
const STATEMENT = /^(?:import|export)\s([^;]*?)\sfrom\s'(\.[^']+)'/gm;

export interface FolderImports {
  readonly folder: string;
  /** Folders of which code runs. Sorted, as the other one is. */
  readonly code: readonly string[];
  /** Folders of which types are used and nothing else. */
  readonly typesOnly: readonly string[];
}

/** Sorted by folder. src/main.ts is left out: it belongs to no folder. */
export function folderImports(): FolderImports[] {
  const folders = readdirSync(SOURCES, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return folders.map(({ name }) => importsOf(name)).toSorted((a, b) => (a.folder < b.folder ? -1 : 1));
}

function importsOf(folder: string): FolderImports {
  const code = new Set<string>();
  const types = new Set<string>();
  for (const entry of readdirSync(join(SOURCES, folder), { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !entry.name.endsWith('.ts')) continue;
    const text = readFileSync(join(entry.parentPath, entry.name), 'utf8');
    for (const [, names = '', specifier = ''] of text.matchAll(STATEMENT)) {
      const [other = '', ...below] = resolve(entry.parentPath, specifier).slice(SOURCES.length).split(sep);
      if (below.length > 0 && other !== folder) (isTypesOnly(names) ? types : code).add(other);
    }
  }
  return { folder, code: [...code].sort(), typesOnly: [...types].filter((name) => !code.has(name)).sort() };
}

/** What stands between `import` and `from`. */
function isTypesOnly(names: string): boolean {
  return names.startsWith('type ') || /^\{(?:\s*type\s[^,}]+,?)+\s*\}$/.test(names);
}
