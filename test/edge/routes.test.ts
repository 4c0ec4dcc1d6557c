import { describe, expect, it } from 'vitest';
import { createRouteTable } from '../../src/edge/routes.ts';

const routes = createRouteTable(
  [
    { path: '/api/v1/conversations', methods: ['GET', 'HEAD'], purpose: 'forward' },
    { path: '/api/v1/conversations/{id}', methods: ['GET', 'HEAD'], purpose: 'forward' },
  ],
  new Map([['/v1', '/api/v1']]),
);

function missDetail(path: string): string {
  const match = routes.match(path);
  return match.found ? 'found' : match.detail;
}

describe('both prefixes lead to the same path of the backend', () => {
  it.each([
    ['/v1/conversations', '/api/v1/conversations', '/api/v1/conversations'],
    ['/api/v1/conversations', '/api/v1/conversations', '/api/v1/conversations'],
    ['/v1/conversations/a%20b', '/api/v1/conversations/a%20b', '/api/v1/conversations/{id}'],
    ['/api/v1/conversations/X', '/api/v1/conversations/X', '/api/v1/conversations/{id}'],
    ['/v1/conversations/v1', '/api/v1/conversations/v1', '/api/v1/conversations/{id}'],
  ])('%s', (path, upstreamPath, template) => {
    const match = routes.match(path);
    expect(match).toMatchObject({ found: true, path: upstreamPath, route: { template, allow: 'GET, HEAD' } });
  });
});

it('an id has 1 to 512 bytes', () => {
  expect(routes.match(`/v1/conversations/${'x'.repeat(512)}`).found).toBe(true);
  expect(routes.match(`/v1/conversations/${'x'.repeat(513)}`).found).toBe(false);
});

describe('every other path is a miss', () => {
  it.each([
    '/',
    '/v1',
    '/api/v1',
    '/V1/conversations',
    '/v1/Conversations',
    '/v1//conversations',
    '//v1/conversations',
    '/v1/conversations/a/b',
    '/v1/conversations/a;b',
    '/api/v1/v1/conversations',
    '/v1/api/v1/conversations',
    '/v1conversations',
    '/v1/conversationsx',
    '/api/v1/usage2',
  ])('%s', (path) => {
    expect(routes.match(path).found).toBe(false);
  });
});

describe('a near miss gets the correct form', () => {
  it('a trailing slash', () => {
    expect(missDetail('/v1/conversations/')).toContain('use /api/v1/conversations instead');
    expect(missDetail('/api/v1/conversations/abc/')).toContain('use /api/v1/conversations/{id} instead');
  });

  it('any number of slashes, and none inside', () => {
    expect(missDetail(`/v1/conversations${'/'.repeat(8000)}`)).toContain('use /api/v1/conversations instead');
    expect(missDetail(`${'/'.repeat(8000)}x`)).toContain('nothing at this path');
  });

  it.each(['/v2/conversations', '/api/v2/conversations', '/v2', '/api/v10/x'])('another version: %s', (path) => {
    expect(missDetail(path)).toContain('The API is under /api/v1 and /v1');
  });

  it('anything else gets the list of what exists', () => {
    expect(missDetail('/metrics')).toBe(
      'There is nothing at this path. Available paths: /api/v1/conversations and /api/v1/conversations/{id}.',
    );
  });
});

it('a dot in a configured path matches a dot only', () => {
  const table = createRouteTable([{ path: '/a.b/{id}', methods: ['GET'], purpose: 'forward' }], new Map());
  expect(table.match('/a.b/c').found).toBe(true);
  expect(table.match('/axb/c').found).toBe(false);
});
