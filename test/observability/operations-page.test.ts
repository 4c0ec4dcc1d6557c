import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { PROBLEMS } from '../../src/problems/table.ts';
import { readAlerts, readDashboard } from '../prometheus/files.ts';

const DOCS = new URL('../../docs/', import.meta.url);
const page = readFileSync(new URL('operations.md', DOCS), 'utf8');

/** By heading of the third level, as it is written. */
function sectionsOf(markdown: string): Map<string, string> {
  const parts = markdown.split(/^(?=#{1,3} )/m);
  return new Map(
    parts.flatMap((part) => {
      const [, heading, text] = /^### ([^\n]+)\n(.*)$/s.exec(part) ?? [];
      return heading === undefined || text === undefined ? [] : [[heading, text] as const];
    }),
  );
}

/** The anchors of a page, as GitHub makes them of headings. */
function anchorsOf(markdown: string): Set<string> {
  const headings = [...markdown.matchAll(/^#{1,6} (.+)$/gm)].map(([, text = '']) => text);
  return new Set(
    headings.map((text) =>
      text
        .toLowerCase()
        .replace(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    ),
  );
}

const sections = sectionsOf(page);
const alerts = readAlerts().map(({ alert }) => alert);
const codes = Object.keys(PROBLEMS);

describe('docs/operations.md', () => {
  it.each([...alerts, ...codes.map((code) => `\`${code}\``)])(
    'says of %s what it means, what to check and what to do',
    (heading) => {
      const text = sections.get(heading) ?? '';
      expect([...text.matchAll(/^\*\*(\w+)\.\*\* \S/gm)].map(([, word]) => word)).toEqual(['Means', 'Check', 'Do']);
    },
  );

  it('has no section for an alert or a code that there is not', () => {
    const known = new Set([...alerts, ...codes.map((code) => `\`${code}\``)]);
    const shaped = [...sections].filter(([, text]) => text.includes('**Means.**')).map(([heading]) => heading);
    expect(shaped.filter((heading) => !known.has(heading))).toEqual([]);
  });

  it('has the place that each alert points to', () => {
    for (const { annotations } of readAlerts()) {
      const [file, anchor] = (annotations.runbook_url ?? '').split('#');
      expect(file).toBe('docs/operations.md');
      expect(anchorsOf(page)).toContain(anchor);
    }
  });

  it('links to pages and places that exist', () => {
    const links = [...page.matchAll(/\]\(([^)]+)\)/g)].map(([, link = '']) => link);
    const broken = links.filter((link) => {
      const [file = '', anchor] = link.split('#');
      const url = file === '' ? new URL('operations.md', DOCS) : new URL(file, DOCS);
      return !existsSync(url) || (anchor !== undefined && !anchorsOf(readFileSync(url, 'utf8')).has(anchor));
    });
    expect(broken).toEqual([]);
  });

  it('names panels of the dashboard as they are called', () => {
    const titles = new Set(readDashboard().panels.map(({ title }) => title));
    const named = [...page.matchAll(/(?<!\*)\*([A-Z5][^*\n]+)\*(?!\*)/g)].map(([, title = '']) => title);
    expect(named.length).toBeGreaterThan(10);
    expect(named.filter((title) => !titles.has(title))).toEqual([]);
  });
});
