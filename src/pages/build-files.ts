/**
 * Builds the files that browsers load for a site, the console or the portal, from the sources in its folders and the
 * locked libraries. There is no build step and no bundle: types are stripped as Node.js strips them from the server's
 * sources, and each module stays a file of its own.
 *
 * All files share one hash of all contents, so modules can import each other in circles and by relative URL. Bare
 * specifiers become relative URLs too, because an import map would be an inline script, which the Content-Security-Policy
 * forbids.
 */
import { hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { basename, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, gzipSync } from 'node:zlib';

/** The path of each site, and the folders below src/ with its files, whose names must be distinct within a site. */
export const SITES = {
  console: { path: '/console', folders: ['pages/client', 'pages/console'] },
  portal: { path: '/portal', folders: ['pages/client', 'pages/portal'] },
} as const satisfies Readonly<Record<string, { readonly path: string; readonly folders: readonly string[] }>>;

export type Site = keyof typeof SITES;

export interface PageFile {
  readonly type: string;
  readonly identity: Uint8Array;
  readonly gzip: Uint8Array;
  readonly br: Uint8Array;
}

export interface PageFiles {
  /** Changes with the content of any file. */
  readonly hash: string;
  /** By name, as in the URL `<path>/assets/<hash>/<name>`. */
  readonly assets: ReadonlyMap<string, PageFile>;
  /** The HTML document of every page. */
  readonly page: PageFile;
}

/** In the built package, too: the clients are copied there with their types. */
const SOURCES = join(import.meta.dirname, '..');

/** `.ts` in a checkout, `.js` in the built package. */
const EXTENSION = extname(import.meta.filename);

/**
 * What the client may import besides its own modules, by specifier: the file, if it is another one, and what makes a
 * classic script a module. Of the gateway, only modules without imports.
 */
const LIBRARIES: Readonly<Record<string, readonly [file?: string, suffix?: string]>> = {
  '../../formats/accent-color.ts': [`../formats/accent-color${EXTENSION}`],
  '../../api/admin/audit-rows.ts': [`../api/admin/audit-rows${EXTENSION}`],
  '../../http/problems/table.ts': [`../http/problems/table${EXTENSION}`],
  preact: [],
  'preact/hooks': [],
  htm: [],
  'htm/preact': [],
  // The module of the package is not minified.
  uplot: ['uplot/dist/uPlot.iife.min.js', '\nexport default uPlot;\n'],
  'uplot/dist/uPlot.min.css': [],
};

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

const ENTRY = 'main.js';
/** The specifier of an import or export, static or dynamic, also in minified code. */
const SPECIFIER = /(\bfrom ?|\bimport ?\(?)(["'])([^"'\n]+)\2/g;
const DOCUMENT_REFERENCE = /\b(src|href)="([^"]+)"/g;

/** Reads, converts and compresses all files: CPU work of half a second, for a thread. */
export function buildPageFiles(site: Site): PageFiles {
  const { path, folders } = SITES[site];
  const texts = new Map<string, string>();
  let document = '';
  for (const folder of folders) {
    for (const file of readdirSync(join(SOURCES, folder)).toSorted()) {
      const text = readFileSync(join(SOURCES, folder, file), 'utf8');
      if (extname(file) === '.ts') texts.set(servedName(file), scriptOf(text, file));
      else if (file === 'index.html') document = text;
      else texts.set(file, text);
    }
  }
  for (const [specifier, [file = specifier, suffix = '']] of Object.entries(LIBRARIES)) {
    const isOfGateway = specifier.startsWith('.');
    if (isOfGateway && ![...texts.values()].some((text) => text.includes(`./${servedName(specifier)}`))) continue;
    const text = readFileSync(fileURLToPath(import.meta.resolve(file)), 'utf8');
    // The source maps are not served.
    texts.set(servedName(specifier), scriptOf(text.replace(/^\/\/# sourceMappingURL=.*$/m, ''), file) + suffix);
  }
  const digest = hash('sha256', JSON.stringify([...texts]), 'base64url').slice(0, 16);
  return {
    hash: digest,
    assets: new Map([...texts].map(([name, text]) => [name, compressed(name, text)])),
    page: compressed('index.html', pageOf(document, `${path}/assets/${digest}/`, texts)),
  };
}

/** Returns the name under which a library, such as `preact-hooks.js`, or a file of the site's folders is served. */
function servedName(reference: string): string {
  if (!Object.hasOwn(LIBRARIES, reference)) return basename(reference).replace(/\.ts$/, '.js');
  const [, name = '', css = '.js'] = /^[./]*(.*?)(?:\.ts|\.min(\.css))?$/.exec(reference) ?? [];
  return name.replaceAll('/', '-') + css;
}

/** Lines that are comments. Browsers need none of them. */
const COMMENTS = /^ *(?:\/\*[\s\S]*?\*\/|\/\/.*)\n/gm;

function scriptOf(text: string, file: string): string {
  return rewriteImports(extname(file) === '.ts' ? stripTypeScriptTypes(text.replace(COMMENTS, '')) : text);
}

function rewriteImports(code: string): string {
  return code.replace(SPECIFIER, (statement, keyword: string, quote: string, specifier: string) => {
    // Anything else is text that looks like an import.
    const isImport = Object.hasOwn(LIBRARIES, specifier) || /^\.{1,2}\/[\w./-]+\.ts$/.test(specifier);
    return isImport ? `${keyword}${quote}./${servedName(specifier)}${quote}` : statement;
  });
}

function compressed(name: string, text: string): PageFile {
  const type = TYPES[extname(name)];
  if (type === undefined) throw new Error(`pages have no content type for ${name}`);
  const identity = Buffer.from(text);
  return { type, identity, gzip: gzipSync(identity, { level: 9 }), br: brotliCompressSync(identity) };
}

/**
 * Points the references of index.html to the assets, and adds a preload for each module, so that
 * the browser requests them together instead of level by level.
 */
function pageOf(document: string, base: string, texts: ReadonlyMap<string, string>): string {
  const modules = [...texts.keys()].filter((name) => name.endsWith('.js') && name !== ENTRY);
  const preloads = modules.map((name) => `<link rel="modulepreload" href="${base}${name}">`);
  return document
    .replace(DOCUMENT_REFERENCE, (_reference, attribute: string, target: string) => {
      const name = servedName(target);
      if (!texts.has(name)) throw new Error(`index.html refers to ${target}, which does not exist`);
      return `${attribute}="${base}${name}"`;
    })
    .replace(/^ *<\/head>/m, (end) => `${preloads.map((preload) => `    ${preload}\n`).join('')}${end}`);
}
