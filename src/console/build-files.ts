/**
 * Builds the files that the console's browser loads, from the sources in client/ and the locked libraries. There is no
 * build step and no bundle: types are stripped as Node.js strips them from the server's sources, and each module stays a
 * file of its own.
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

export interface ConsoleFile {
  readonly type: string;
  readonly identity: Uint8Array;
  readonly gzip: Uint8Array;
  readonly br: Uint8Array;
}

export interface ConsoleFiles {
  /** Changes with the content of any file. */
  readonly hash: string;
  /** By name, as in the URL `/console/assets/<hash>/<name>`. */
  readonly assets: ReadonlyMap<string, ConsoleFile>;
  /** The HTML document of every page. */
  readonly page: string;
}

/** Also the package's location of the clients: they are copied there with their types. */
const SHARED_FOLDER = join(import.meta.dirname, '../pages/client');
const CLIENT_FOLDER = join(import.meta.dirname, 'client');

interface Library {
  /** Name under which it is served. */
  readonly name: string;
  /** What to resolve, if not the specifier itself. */
  readonly file?: string;
  /** Statement that makes a classic script a module. */
  readonly suffix?: string;
}

/** What the client may import besides its own modules, by specifier. Of the gateway, only a table without imports. */
const LIBRARIES: Readonly<Record<string, Library>> = {
  '../../problems/table.ts': { name: 'problem-table.js', file: `../problems/table${extname(import.meta.filename)}` },
  preact: { name: 'preact.js' },
  'preact/hooks': { name: 'preact-hooks.js' },
  htm: { name: 'htm.js' },
  'htm/preact': { name: 'htm-preact.js' },
  // The module of the package is not minified.
  uplot: { name: 'uplot.js', file: 'uplot/dist/uPlot.iife.min.js', suffix: '\nexport default uPlot;\n' },
  'uplot/dist/uPlot.min.css': { name: 'uplot.css' },
};

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

const ENTRY = 'main.js';
/** The specifier of an import or export, static or dynamic, also in minified code. */
const SPECIFIER = /(\bfrom ?|\bimport ?\(?)(["'])([^"'\n]+)\2/g;
const OWN_SPECIFIER = /^(?:\.|\.\.\/\.\.\/pages\/client)\/([\w-]+\.ts)$/;
const DOCUMENT_REFERENCE = /\b(src|href)="([^"]+)"/g;

/** Reads, converts and compresses all files: CPU work of half a second, for a thread. */
export function buildConsoleFiles(folder = CLIENT_FOLDER): ConsoleFiles {
  const texts = new Map<string, string>();
  for (const path of [SHARED_FOLDER, folder].flatMap(filesOf)) {
    const text = readFileSync(path, 'utf8');
    const file = basename(path);
    if (texts.has(servedName(`./${file}`))) throw new Error(`two files of the client are named ${file}`);
    if (extname(file) === '.ts') texts.set(servedName(`./${file}`), scriptOf(text, file));
    else if (file !== 'index.html') texts.set(file, text);
  }
  for (const [specifier, { name, file = specifier, suffix = '' }] of Object.entries(LIBRARIES)) {
    const text = readFileSync(fileURLToPath(import.meta.resolve(file)), 'utf8');
    // The source maps are not served.
    texts.set(name, scriptOf(text.replace(/^\/\/# sourceMappingURL=.*$/m, ''), file) + suffix);
  }
  const digest = hash('sha256', JSON.stringify([...texts]), 'base64url').slice(0, 16);
  return {
    hash: digest,
    assets: new Map([...texts].map(([name, text]) => [name, compressed(name, text)])),
    page: pageOf(readFileSync(join(folder, 'index.html'), 'utf8'), `/console/assets/${digest}/`, texts),
  };
}

const filesOf = (folder: string) =>
  readdirSync(folder)
    .toSorted()
    .map((file) => join(folder, file));

/** Returns the name under which a file of the client, as `./file`, or a library is served. */
function servedName(reference: string): string {
  if (reference.startsWith('./')) return reference.slice(2).replace(/\.ts$/, '.js');
  const library = LIBRARIES[reference];
  if (library === undefined) throw new Error(`the console serves no ${reference}: add it to LIBRARIES`);
  return library.name;
}

function scriptOf(text: string, file: string): string {
  return rewriteImports(extname(file) === '.ts' ? stripTypeScriptTypes(text) : text);
}

function rewriteImports(code: string): string {
  return code.replace(SPECIFIER, (statement, keyword: string, quote: string, specifier: string) => {
    // Anything else is text that looks like an import.
    const [, own] = OWN_SPECIFIER.exec(specifier) ?? [];
    if (own === undefined && !(specifier in LIBRARIES)) return statement;
    return `${keyword}${quote}./${servedName(own ? `./${own}` : specifier)}${quote}`;
  });
}

function compressed(name: string, text: string): ConsoleFile {
  const type = TYPES[extname(name)];
  if (type === undefined) throw new Error(`the console has no content type for ${name}`);
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
