/** The pages lead to each other, and to files that exist. */
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const PAGES = ['README.md', 'SECURITY.md', ...globSync('docs/**/*.md', { cwd: ROOT })];

/** Made by the operator. */
const NOT_IN_REPOSITORY = ['deploy/.env'];

const read = (page: string) => readFileSync(join(ROOT, page), 'utf8');
const readProse = (page: string) => read(page).replace(/^```.*?^```/gms, '');

/** Targets of the links in a page that are neither URLs nor anchors of the same page, as paths from the root. */
function linksOf(page: string): { path: string; anchor: string | undefined }[] {
  return [...readProse(page).matchAll(/\]\((?!https?:|mailto:)([^)\s]*)\)/g)].map(([, target = '']) => {
    const [file = '', anchor] = target.split('#');
    return { path: file === '' ? page : join(dirname(page), file), anchor };
  });
}

/** As GitHub makes them from headings. */
function anchorsOf(page: string): string[] {
  const headings = [...readProse(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => heading);
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

it.each(PAGES)('each link of %s leads to a file, and to a heading if it names one', (page) => {
  const broken = linksOf(page).filter(({ path, anchor }) => {
    if (!existsSync(join(ROOT, path))) return true;
    return anchor !== undefined && path.endsWith('.md') && !anchorsOf(path).includes(anchor);
  });
  expect(broken).toEqual([]);
});

it.each(PAGES)('each file of this repository that %s names exists', (page) => {
  const named = [...read(page).matchAll(/`((?:src|test|docs|config|deploy|scripts|bin|tools|bench)\/[\w./-]+)`/g)];
  const paths = named.map(([, path = '']) => path).filter((path) => !NOT_IN_REPOSITORY.includes(path));
  expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

it('README.md leads to every page', () => {
  const reached = new Set<string>();
  const visit = (path: string) => {
    if (reached.has(path) || !existsSync(join(ROOT, path))) return;
    reached.add(path);
    if (statSync(join(ROOT, path)).isDirectory())
      for (const file of globSync(`${path}/*`, { cwd: ROOT })) reached.add(relative('.', file));
    else if (path.endsWith('.md')) for (const link of linksOf(path)) visit(link.path);
  };
  visit('README.md');
  expect(PAGES.filter((page) => !reached.has(page))).toEqual([]);
});
