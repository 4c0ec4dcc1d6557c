import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { findPathFault } from '../../src/edge/path.ts';
import { createRouteTable } from '../../src/edge/routes.ts';

/** Routes with these templates, each of which allows PUT only, and one byte more than its index. */
function tableOf(...paths: string[]) {
  const definitions = paths.map((path, index) => ({ path, methods: ['PUT'], maxBodyBytes: index + 1 }));
  return createRouteTable(
    definitions.map((definition) => ({ ...definition, purpose: 'forward' })),
    new Map(),
  );
}

/** The template of the route that `path` leads to; undefined if there is none. */
function templateOf(table: ReturnType<typeof tableOf>, path: string): string | undefined {
  const match = table.match(path);
  return match.found ? match.route.template : undefined;
}

const routes = createRouteTable(
  [
    { path: '/api/v1/conversations', methods: ['GET', 'HEAD'], maxBodyBytes: 0, purpose: 'forward' },
    { path: '/api/v1/conversations/{id}', methods: ['GET', 'HEAD'], maxBodyBytes: 0, purpose: 'forward' },
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

  it('the root, which browsers open first, is called the root of an API', () => {
    expect(missDetail('/')).toBe(
      'This is an API, without a page at its root. Available paths: /api/v1/conversations and /api/v1/conversations/{id}.',
    );
  });
});

describe('the root as a route', () => {
  const table = tableOf('/{rest...}', '/', '/{id}');

  it.each([
    ['/', '/'],
    ['/a', '/{id}'],
    ['/a/b', '/{rest...}'],
  ])('stands beside a catch-all: %s leads to %s', (path, template) => {
    expect(table.match(path)).toMatchObject({ found: true, path, route: { template } });
  });

  it.each(['//', '///', '//a', '/;', '/;a'])('has one spelling: %s leads nowhere', (path) => {
    expect(table.match(path).found).toBe(false);
  });

  it('alone, it opens no other path', () => {
    for (const path of ['/a', '//', '/index.html']) expect(templateOf(tableOf('/'), path)).toBeUndefined();
    expect(templateOf(tableOf('/'), '/')).toBe('/');
  });

  it('is no prefix that an alias replaces', () => {
    const definition = { maxBodyBytes: 1, purpose: 'forward', methods: ['GET'] } as const;
    const aliased = createRouteTable(
      [
        { ...definition, path: '/' },
        { ...definition, path: '/api/v1/{id}' },
      ],
      new Map([['/v1', '/api/v1']]),
    );
    expect(aliased.match('/')).toMatchObject({ found: true, path: '/' });
    expect(aliased.match('/v1').found).toBe(false);
    expect(aliased.match('/v1/').found).toBe(false);
  });
});

it('a long list of routes is cut off', () => {
  const paths = Array.from({ length: 300 }, (_, index) => `/r${index}`);
  const match = tableOf(...paths).match('/x');
  expect(match.found ? '' : match.detail).toBe(
    'There is nothing at this path. Available paths: /r0, /r1, /r2, /r3, /r4, /r5, /r6, /r7, /r8, /r9 and 290 more.',
  );
});

it('a dot in a configured path matches a dot only', () => {
  const table = tableOf('/a.b/{id}');
  expect(table.match('/a.b/c').found).toBe(true);
  expect(table.match('/axb/c').found).toBe(false);
});

describe('the most specific route wins, whatever their order', () => {
  const paths = [
    '/{all...}',
    '/a/{rest...}',
    '/a/{id}',
    '/a/b',
    '/a/{id}/c',
    '/a/b/{rest...}',
    '/{x}/b/c/d',
    '/a/b/{y}',
  ];
  it.each([
    ['/a/b', '/a/b'],
    ['/a/x', '/a/{id}'],
    ['/a/x/c', '/a/{id}/c'],
    ['/a/b/c', '/a/b/{y}'],
    ['/a/b/c/d', '/a/b/{rest...}'],
    ['/x/b/c/d', '/{x}/b/c/d'],
    ['/a/x/y', '/a/{rest...}'],
    ['/a', '/{all...}'],
    ['/x/y', '/{all...}'],
  ])('%s', (path, template) => {
    expect(templateOf(tableOf(...paths), path)).toBe(template);
    expect(templateOf(tableOf(...paths.toReversed()), path)).toBe(template);
  });
});

it('the path alone chooses the route: a method that it lacks does not lead to a catch-all', () => {
  const definition = { maxBodyBytes: 1, purpose: 'forward' } as const;
  const table = createRouteTable(
    [
      { ...definition, path: '/a', methods: ['GET', 'HEAD'] },
      { ...definition, path: '/{rest...}', methods: ['POST'] },
    ],
    new Map(),
  );
  expect(table.match('/a')).toMatchObject({ found: true, route: { allow: 'GET, HEAD' } });
  expect(table.match('/b')).toMatchObject({ found: true, route: { allow: 'POST' } });
});

it('the method chooses among entries with the same paths, and Allow names the methods of all', () => {
  const definition = { maxBodyBytes: 1, purpose: 'forward' } as const;
  const table = createRouteTable(
    [
      { ...definition, path: '/a/{x}', methods: ['GET', 'HEAD'], scope: 'read' },
      { ...definition, path: '/a/{y}', methods: ['PUT'], scope: 'write' },
      { ...definition, path: '/{rest...}', methods: ['POST'] },
    ],
    new Map(),
  );
  const allow = 'GET, HEAD, PUT';
  expect(table.match('/a/1', 'HEAD')).toMatchObject({ found: true, route: { scope: 'read', allow } });
  expect(table.match('/a/1', 'PUT')).toMatchObject({ found: true, route: { scope: 'write', allow } });
  expect(table.match('/a/1')).toMatchObject({ found: true, route: { allow } });
  const lacking = table.match('/a/1', 'POST');
  expect(lacking.found && lacking.route).toMatchObject({ allow });
  expect(lacking.found && lacking.route.methods.has('POST')).toBe(false);
});

describe('a path that a backend which ignores case takes for that of a more specific route', () => {
  const table = tableOf(
    '/{all...}',
    '/api/admin/users',
    '/api/{id}',
    '/api/{id}/Keys',
    '/api/usage',
    '/stra%C3%9Fe/{x}',
  );

  it.each([
    ['/api/Admin/users', '/api/admin/users'],
    ['/API/ADMIN/USERS', '/api/admin/users'],
    ['/api/admin/users/', '/api/admin/users'],
    ['/api/Admin/users/', '/api/admin/users'],
    ['/API/x', '/api/{id}'],
    ['/api/x/keys', '/api/{id}/Keys'],
    ['/api/Usage', '/api/usage'],
    ['/api/u%C5%BFage', '/api/usage'],
    ['/stra%c3%9fe/x', '/stra%C3%9Fe/{x}'],
  ])('%s leads nowhere, and names %s', (path, template) => {
    const match = table.match(path);
    expect(match.found ? '' : match.detail).toMatch(/: use .* instead\.$/);
    expect(match.found ? '' : match.detail).toContain(`use ${template} instead`);
  });

  it.each([
    ['/api/X', '/api/{id}'],
    ['/api/X/Keys', '/api/{id}/Keys'],
    ['/other/Admin', '/{all...}'],
    ['/api/Admin/users/x', '/{all...}'],
  ])('others do as before: %s', (path, template) => {
    expect(templateOf(table, path)).toBe(template);
  });

  it('routes that differ only in case are each reached by their own', () => {
    const both = tableOf('/a/B', '/a/b', '/a/{x}', '/A/{x}');
    for (const [path, template] of [
      ['/a/B', '/a/B'],
      ['/a/b', '/a/b'],
      ['/A/x', '/A/{x}'],
      ['/a/x', '/a/{x}'],
    ] as const) {
      expect(templateOf(both, path)).toBe(template);
    }
    expect(templateOf(both, '/A/b')).toBeUndefined();
  });
});

describe('a route without a key opens no route with a key, and the other way round', () => {
  const definition = { maxBodyBytes: 1, purpose: 'forward', methods: ['GET'] } as const;
  const keyOf = (path: string, open: string, closed: string) => {
    const table = createRouteTable(
      [
        { ...definition, path: open, key: 'none' },
        { ...definition, path: closed },
        { path: '/api/usage', methods: ['GET'], purpose: 'usage' },
      ],
      new Map([['/v1', '/api']]),
    );
    const match = table.match(path, 'GET');
    return match.found && match.route.purpose === 'forward' ? (match.route.key ?? 'required') : 'nowhere';
  };

  it.each([
    ['/api/Users', '/{rest...}', '/api/users'],
    ['/API/users', '/{rest...}', '/api/users'],
    ['/api/users/', '/{rest...}', '/api/users'],
    ['/api/USERS/', '/{rest...}', '/api/users'],
    ['/v1/users/', '/{rest...}', '/api/users'],
    ['/v1/Users', '/{rest...}', '/api/users'],
    ['/api/u%C5%BFers', '/{rest...}', '/api/users'],
    ['/api/%C4%B0nfo', '/{rest...}', '/api/info'],
    ['/api/%C4%B1nfo', '/{rest...}', '/api/info'],
    ['/api/%E2%84%AAeys', '/api/{id}', '/api/keys'],
    ['/api/Usage', '/{rest...}', '/api/users'],
    ['/api/usage/', '/{rest...}', '/api/users'],
    ['/api/users;x', '/{rest...}', '/api/users'],
    ['/api//users', '/{rest...}', '/api/users'],
    ['//api/users', '/{rest...}', '/api/users'],
    ['//', '/{rest...}', '/'],
    ['/API/5', '/{rest...}', '/api/{id}'],
    ['/api/5/', '/{rest...}', '/api/{id}'],
    ['/api/Users', '/api/{id}', '/api/users'],
    ['/api/users/', '/api/{id}', '/api/users'],
    ['/api/Health', '/api/health', '/{rest...}'],
    ['/api/health/', '/api/health', '/{rest...}'],
    ['/api/Health', '/api/health', '/api/{id}'],
  ])('%s with %s open and %s closed leads nowhere', (path, open, closed) => {
    expect(keyOf(path, open, closed)).toBe('nowhere');
  });

  it.each([
    ['/api/users', '/{rest...}', '/api/users', 'required'],
    ['/v1/users', '/{rest...}', '/api/users', 'required'],
    ['/api/user', '/{rest...}', '/api/users', 'none'],
    ['/api/health', '/api/health', '/{rest...}', 'none'],
    ['/api/Healthy', '/api/health', '/{rest...}', 'required'],
  ])('%s with %s open and %s closed: %s', (path, open, closed, key) => {
    expect(keyOf(path, open, closed)).toBe(key);
  });
});

describe('a catch-all', () => {
  const table = tableOf('/a/{rest...}', '/a/b/{id}', '/usage');

  it.each(['/a/x', '/a/x/', '/a/x/y/z', '/a/x/y/z/', '/a/b', '/a/b/', '/a/b/c/d'])('takes %s', (path) => {
    expect(table.match(path)).toMatchObject({
      found: true,
      path,
      route: { template: '/a/{rest...}', maxBodyBytes: 1 },
    });
  });

  it.each([
    ['no segment', '/a'],
    ['an empty segment', '/a/'],
    ['an empty segment at the end', '/a/x//'],
    ['an empty segment inside', '/a/x//y'],
    ['an empty segment at its start', '/a//x'],
    ['a semicolon', '/a/x/y;z'],
    ['a segment of 513 bytes', `/a/x/${'y'.repeat(513)}`],
    ['a segment of 513 bytes and a slash', `/a/${'y'.repeat(513)}/`],
  ])('refuses %s', (_, path) => {
    expect(table.match(path).found).toBe(false);
  });

  it('gets no path that differs from one of another route only by a slash at its end', () => {
    for (const [path, template] of [
      ['/a/b/c/', '/a/b/{id}'],
      ['/usage/', '/usage'],
    ] as const) {
      const all = tableOf('/{rest...}', '/a/b/{id}', '/usage').match(path);
      expect(all.found ? '' : all.detail).toBe(`There is no trailing slash here: use ${template} instead.`);
    }
  });

  it('is not named as the form without a trailing slash', () => {
    const match = table.match('/a/x//');
    expect(match.found ? '' : match.detail).toMatch(/^There is nothing at this path/);
  });

  it('of an alias begins after the alias', () => {
    const aliased = createRouteTable(
      [{ path: '/api/v1/{rest...}', methods: ['PUT'], maxBodyBytes: 0, purpose: 'forward' }],
      new Map([['/v1', '/api/v1']]),
    );
    expect(aliased.match('/v1/a/b/')).toMatchObject({ found: true, path: '/api/v1/a/b/' });
    expect(aliased.match('/v1/').found).toBe(false);
  });
});

const swapCase = (c: string) => (c === c.toLowerCase() ? c.toUpperCase() : c.toLowerCase());

const word = fc.constantFrom('a', 'b', 'c', 'A', 'B');
const templates = fc
  .uniqueArray(
    fc
      .tuple(fc.array(fc.oneof(word, fc.constant('{}')), { maxLength: 4 }), fc.constantFrom('a', 'A', '{}', '{...}'))
      .map(([segments, last]) => [...segments, last]),
    { selector: (segments) => segments.join('/'), minLength: 1, maxLength: 12 },
  )
  .map((shapes) => [
    '/',
    ...shapes.map((segments) => `/${segments.map((shape, index) => shape.replace('{', `{p${index}`)).join('/')}`),
  ]);
const pathSegment = fc.oneof(
  { weight: 12, arbitrary: word },
  { weight: 1, arbitrary: fc.constantFrom('', ';', 'a;b', '%20', '{p}', 'x'.repeat(512), 'x'.repeat(513)) },
);
const paths = fc.array(pathSegment, { maxLength: 7 }).map((segments) => `/${segments.join('/')}`);

/** The rules of `{id}`. */
const isParameterValue = (segment: string) => /^[^;]{1,512}$/.test(segment);
const rankOf = (segment: string) => (segment.endsWith('...}') ? 2 : segment.startsWith('{') ? 1 : 0);

/** Whether a template matches `path`, tried without the tree. */
function matches(template: string, path: string, ignoresCase = false): boolean {
  if (ignoresCase) return matches(template.toLowerCase(), path.toLowerCase());
  const wanted = template.split('/').slice(1);
  const sent = path.split('/').slice(1);
  const isCatchAll = rankOf(wanted.at(-1) ?? '') === 2;
  if (isCatchAll ? sent.length < wanted.length : sent.length !== wanted.length) return false;
  return sent.every((segment, index) => {
    const at = wanted[Math.min(index, wanted.length - 1)] ?? '';
    return rankOf(at) === 0 ? at === segment : isParameterValue(segment);
  });
}

/** The most specific of the templates that match: segment by segment, the lowest rank. None if case hides a better one. */
function oracle(all: readonly string[], path: string): string | undefined {
  if (path === '/') return path;
  const bare = path.replace(/\/$/, '');
  const ranks = (template: string) => template.split('/').slice(1).map(rankOf).join('');
  const bestOf = (ignoresCase: boolean) =>
    all
      .filter((template) => matches(template, bare, ignoresCase))
      .reduce<string | undefined>((a, b) => (a === undefined || ranks(b) < ranks(a) ? b : a), undefined);
  const best = bestOf(false);
  if (best === undefined || ranks(bestOf(true) ?? '') < ranks(best)) return undefined;
  return bare === path || best.endsWith('...}') ? best : undefined;
}

test('of random routes, the most specific one that matches is chosen', () => {
  let found = 0;
  let ambiguous = 0;
  fc.assert(
    fc.property(templates, fc.array(paths, { minLength: 1, maxLength: 20 }), (all, sent) => {
      const table = tableOf(...all);
      for (const path of sent) {
        const best = oracle(all, path);
        if (best !== undefined) found++;
        if (all.filter((template) => matches(template, path)).length > 1) ambiguous++;
        expect(templateOf(table, path), `${path} among ${all.join(' ')}`).toBe(best);
      }
    }),
    { numRuns: 2000 },
  );
  expect(found).toBeGreaterThan(1000);
  expect(ambiguous).toBeGreaterThan(200);
});

test('no spelling of a path leads to a route of another shape: none without a key opens one with a key, or hides it', () => {
  const spelling = fc.tuple(fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }), fc.boolean());
  let both = 0;
  fc.assert(
    fc.property(templates, paths, fc.array(spelling, { maxLength: 20 }), (all, path, spellings) => {
      const table = tableOf(...all);
      const match = table.match(path);
      if (!match.found) return;
      for (const [flips, hasSlash] of spellings) {
        const flipped = [...path].map((c, i) => (flips[i % 8] ? swapCase(c) : c)).join('');
        const sent = hasSlash ? `${flipped}/` : flipped.replace(/(?<=.)\/$/, '');
        const other = table.match(sent);
        if (!other.found) continue;
        if (sent !== path) both++;
        expect(other.route.shape, `${sent} and ${path} among ${all.join(' ')}`).toBe(match.route.shape);
      }
    }),
    { numRuns: 2000 },
  );
  expect(both).toBeGreaterThan(500);
});

test('a catch-all lets no segment pass that {id} would refuse', () => {
  const id = tableOf('/x/{id}');
  const rest = tableOf('/x/{rest...}');
  const bytes = fc.string({
    unit: fc.constantFrom('a', ';', '.', '%41', '%2e', '%2f', '%3b', '~', '\\', '\u0000', ' '),
  });
  const segment = fc.oneof(pathSegment, bytes);
  const isValid = (path: string) => findPathFault(path) === undefined;
  let passed = 0;
  fc.assert(
    fc.property(fc.array(segment, { minLength: 1, maxLength: 5 }), (segments) => {
      const path = `/x/${segments.join('/')}`;
      const isAccepted = isValid(path) && rest.match(path).found;
      if (isAccepted) passed++;
      const [, , ...each] = path.replace(/\/$/, '').split('/');
      const ids = each.map((value) => `/x/${value}`);
      expect(isAccepted, path).toBe(ids.length > 0 && ids.every((one) => isValid(one) && id.match(one).found));
    }),
    { numRuns: 5000 },
  );
  expect(passed).toBeGreaterThan(500);
});

describe('hostile paths of 8 KiB are matched in linear time', () => {
  const nested = Array.from({ length: 100 }, (_, depth) => {
    const parameters = Array.from({ length: depth }, (__, index) => `/{p${index}}`);
    return `${parameters.join('')}/{rest...}`;
  });
  it.each([
    ['slashes', '/'.repeat(8192)],
    ['short segments', '/a'.repeat(4096)],
    ['short segments and a bad end', `${'/a'.repeat(4095)};`],
    ['short segments, the last of them empty', `${'/a'.repeat(4094)}//`],
    ['long segments', `/${'a'.repeat(512)}`.repeat(15)],
    ['long segments, then one that is too long', `${`/${'a'.repeat(512)}`.repeat(14)}/${'a'.repeat(513)}`],
  ])('%s', (_, path) => {
    const table = tableOf(...nested);
    const durationsMs = Array.from({ length: 20 }, () => {
      const startedAtMs = performance.now();
      table.match(path);
      return performance.now() - startedAtMs;
    });
    // Quadratic time would take seconds. The fastest: whatever else the machine does slows down others.
    expect(Math.min(...durationsMs)).toBeLessThan(50);
  });
});
