import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { PROBLEMS } from '../../src/http/problems/table.ts';
import { readAlerts, readDashboard } from '../prometheus/files.ts';

const DOCS = new URL('../../docs/', import.meta.url);
const page = readFileSync(new URL('operations.md', DOCS), 'utf8');
const errorsPage = readFileSync(new URL('errors.md', DOCS), 'utf8');

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

const alerts = readAlerts().map(({ alert }) => alert);
const codes = Object.keys(PROBLEMS).map((code) => `\`${code}\``);

describe.each([
  { name: 'docs/operations.md', text: page, headings: alerts, parts: ['Means', 'Check', 'Do'] },
  { name: 'docs/errors.md', text: errorsPage, headings: codes, parts: ['Check', 'Do'] },
])('$name', ({ text, headings, parts }) => {
  const sections = sectionsOf(text);
  const partsOf = (section = '') => [...section.matchAll(/^\*\*(\w+)\.\*\* \S/gm)].map(([, word]) => word);

  it.each(headings)('says of %s what to check and what to do', (heading) => {
    expect(partsOf(sections.get(heading))).toEqual(parts);
  });

  it('has no section for an alert or a code that does not exist', () => {
    const shaped = [...sections].filter(([, section]) => partsOf(section).includes('Do')).map(([heading]) => heading);
    expect(shaped.filter((heading) => !headings.includes(heading))).toEqual([]);
  });

  it('names panels of the dashboard as they are called', () => {
    const titles = new Set(readDashboard().panels.map(({ title }) => title));
    const named = [...text.matchAll(/(?<!\*)\*([A-Z5][^*]+)\*(?!\*)/g)].map(([, title = '']) =>
      title.replaceAll(/\s+/g, ' '),
    );
    expect(named.length).toBeGreaterThan(3);
    expect(named.filter((title) => !titles.has(title))).toEqual([]);
  });
});

it('docs/operations.md has the place that each alert points to', () => {
  for (const { annotations } of readAlerts()) {
    const [file, anchor] = (annotations.runbook_url ?? '').split('#');
    expect(file).toBe('docs/operations.md');
    expect(anchorsOf(page)).toContain(anchor);
  }
});
