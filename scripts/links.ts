/**
 * Checks that the pages lead to each other, that the files of this repository that they name exist, and that the pages that
 * code, tests and deployment files name exist.
 */
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
/** Made by the operator. */
const NOT_IN_REPOSITORY = ['deploy/.env'];
/** Its links are checked. The file names are those of past releases. */
const HISTORY = 'CHANGELOG.md';
const SOURCES = ['{src,scripts,test,tools,bench,demo,config,deploy,.ci}/**/*', 'Dockerfile', 'package.json'];
const PAGE_NAME = /\bdocs\/[\w./-]+\.(?:md|yaml|json)\b(?:#[\w-]+\b(?!:))?/g;
const FILE_NAME = /`((?:src|test|docs|config|deploy|scripts|bin|tools|bench)\/[\w./-]+)`/g;

const exists = (path: string) => existsSync(join(ROOT, path));
const read = (page: string) => readFileSync(join(ROOT, page), 'utf8');
const readProse = (page: string) => read(page).replace(/^```.*?^```/gms, '');

/** Returns what is wrong with the links and file names of all pages, one sentence each. */
export function linkFaults(): string[] {
  const pages = globSync(['*.md', 'docs/**/*.md', 'deploy/**/*.md'], { cwd: ROOT });
  const faults = pages.flatMap((page) => {
    const files = page === HISTORY ? [] : [...read(page).matchAll(FILE_NAME)].map(([, path = '']) => path);
    const missing = files.filter((path) => !exists(path) && !NOT_IN_REPOSITORY.includes(path));
    const broken = linksOf(page).filter(({ path, anchor }) => !exists(path) || !hasAnchor(path, anchor));
    return [
      ...missing.map((path) => `${page} names ${path}, which does not exist`),
      ...broken.map(({ target }) => `${page} has a broken link to ${target}`),
    ];
  });
  const reached = reachableFrom('README.md');
  const lost = pages.filter((page) => page.startsWith('docs/') && !reached.has(page));
  return [...faults, ...unknownPages(), ...lost.map((page) => `${page} cannot be reached by links from README.md`)];
}

/** Returns a sentence for each page, or place in a page, that a source names and that does not exist. */
function unknownPages(): string[] {
  // The benchmark installs the packages of its peers below bench/peers.
  const found = globSync(SOURCES, { cwd: ROOT, exclude: ['**/node_modules'] });
  const sources = found.filter((path) => statSync(join(ROOT, path)).isFile());
  return sources.flatMap((source) =>
    [...new Set(read(source).match(PAGE_NAME))]
      .filter((name) => {
        const [path = '', anchor] = name.split('#');
        return !exists(path) || !hasAnchor(path, anchor);
      })
      .map((name) => `${source} names ${name}, which does not exist`),
  );
}

/** Returns the links that are not URLs, with paths from the root. */
function linksOf(page: string): { target: string; path: string; anchor: string | undefined }[] {
  return [...readProse(page).matchAll(/\]\((?!https?:|mailto:)([^)\s]*)\)/g)].map(([, target = '']) => {
    const [file = '', anchor] = target.split('#');
    return { target, path: file === '' ? page : join(dirname(page), file), anchor };
  });
}

/** Anchors are as GitHub makes them from headings. */
function hasAnchor(path: string, anchor: string | undefined): boolean {
  if (anchor === undefined || !path.endsWith('.md')) return true;
  const headings = [...readProse(path).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => heading.toLowerCase());
  return headings.some((heading) => heading.replace(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(' ', '-') === anchor);
}

function reachableFrom(start: string): ReadonlySet<string> {
  const reached = new Set([start]);
  for (const path of reached) {
    if (!exists(path)) continue;
    if (statSync(join(ROOT, path)).isDirectory())
      for (const file of globSync(`${path}/*`, { cwd: ROOT })) reached.add(file);
    else if (path.endsWith('.md')) for (const link of linksOf(path)) reached.add(link.path);
  }
  return reached;
}
