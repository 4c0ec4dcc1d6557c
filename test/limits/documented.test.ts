import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { expect, it } from 'vitest';
import { configReference } from '../../scripts/config-reference.ts';
import { PROBLEMS } from '../../src/http/problems/table.ts';
import { METRICS } from '../../src/observability/metric-definitions.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const text = await readFile(resolve(ROOT, 'docs/security.md'), 'utf8');
const rows = [...text.matchAll(/^\| `([a-z_.]+)` \| (\d+) \| (.+) \|$/gm)];

it('docs/security.md has every limit of the configuration, with its default', () => {
  const documented = new Map(rows.map(([, key, value]) => [key, value]));
  const defaults = new Map(configReference().map((row) => [row.path, row.default]));
  const limits = [...defaults.keys()].filter((path) => path.startsWith('limits.'));
  expect(limits.length).toBeGreaterThan(8);
  for (const path of limits) expect([...documented.keys()]).toContain(path);
  for (const [path, value] of documented) expect([path, defaults.get(path ?? '')]).toEqual([path, value]);
});

it('what docs/security.md says that a client sees is in the table of problems', () => {
  const named = rows.flatMap(([, , , seen = '']) => [...seen.matchAll(/(\d{3}) `([a-z_]+)`/g)]);
  expect(named.length).toBeGreaterThan(8);
  const statuses: Readonly<Record<string, number>> = Object.fromEntries(
    Object.entries(PROBLEMS).map(([code, { status }]) => [code, status]),
  );
  for (const [, status, code = ''] of named) expect([code, statuses[code]]).toEqual([code, Number(status)]);
});

it('every reason to cut a connection is explained with its metric', () => {
  const { reason } = METRICS.tollgate_connections_cut_total.labels;
  for (const explanation of Object.values(reason)) expect(explanation).not.toBe('');
});

it('SECURITY.md says how to report, and points to the threat model', async () => {
  const policy = await readFile(resolve(ROOT, 'SECURITY.md'), 'utf8');
  expect(policy).toContain('(docs/security.md)');
  expect(policy).toMatch(/Report a vulnerability/);
});
