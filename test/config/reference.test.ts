import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { configReference } from '../../scripts/config-reference.ts';

test('every key has a type and a sentence that describes it', () => {
  for (const row of configReference()) {
    expect(row.type, row.path).not.toBe('');
    expect(row.description, row.path).toMatch(/^[A-Z].*\.$/);
  }
});

test('a path is in the reference once', () => {
  const paths = configReference().map(({ path }) => path);
  expect(new Set(paths).size).toBe(paths.length);
});

test('defaults are written as in the file', () => {
  const defaults = new Map(configReference().map((row) => [row.path, row.default]));
  expect(defaults.get('listen.port')).toBe('8080');
  expect(defaults.get('upstream.credentials')).toBe('strip');
  expect(defaults.get('upstream.urls')).toBe('required');
  expect(defaults.get('plans.<name>.requests_per_hour')).toBe('required');
  expect(defaults.get('admin.token')).toBe('');
  expect(parse(defaults.get('routes') ?? '')).toHaveLength(2);
  expect(parse(defaults.get('aliases') ?? '')).toEqual({ '/v1': '/api/v1' });
});

/** The paths of a parsed file as the reference writes them. */
function pathsOf(value: unknown, path: string, known: ReadonlySet<string>): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => pathsOf(item, `${path}[]`, known));
  if (typeof value !== 'object' || value === null) return [path];
  return Object.entries(value).flatMap(([key, child]) => {
    const named = path === '' ? key : `${path}.${key}`;
    const isNamed = [...known].some((other) => other === named || other.startsWith(`${named}.`));
    return pathsOf(child, isNamed ? named : `${path}.<name>`, known);
  });
}

test.each(['gateway.yaml', 'any-backend.yaml'])('every key that %s uses is in the reference', async (name) => {
  const known = new Set(configReference().map(({ path }) => path));
  const file = parse(await readFile(resolve(import.meta.dirname, '../../config', name), 'utf8'));
  const paths = pathsOf(file, '', known);
  expect(paths.length).toBeGreaterThanOrEqual(10);
  for (const path of paths) expect(known).toContain(path);
});
