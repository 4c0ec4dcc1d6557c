/** Routes from OpenAPI descriptions: what is forwarded, what is left out with a warning, and hostile files. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { printable } from '../../src/api/client/printable.ts';
import { routesFromOpenApi, UnusableDescriptionError } from '../../src/cli/openapi/routes-from-openapi.ts';
import { bearer } from '../support/admin.ts';
import { type SystemSettings, startSystem } from '../support/system.ts';
import { startServer, temporaryFile, tollgateHere } from './support.ts';

interface Described {
  readonly path: string;
  readonly methods: readonly string[];
  readonly scope?: string;
}

const INFO = 'info: { title: Pets, version: "1" }';
const OK = '{ responses: { "200": { description: done } } }';
const KEY = 'security: [{ key: [] }]';

/** Returns a description of these paths, as YAML with one path on each line from line 4 on. */
function pathsOf(...lines: string[]): string {
  return ['openapi: 3.1.0', INFO, `${KEY}\npaths:`, ...lines.map((line) => `  ${line}`)].join('\n');
}

const PETSTORE = `openapi: 3.0.4
${INFO}
servers: [{ url: "https://{host}/{version}/", variables: { host: { default: pets.example }, version: { default: v3 } } }]
${KEY}
paths:
  /pets: { get: ${OK}, post: ${OK} }
  /pets/{pet-id}: { parameters: [], get: ${OK}, head: ${OK} }
  /pets/{petId}/photos/{2nd}: { $ref: "#/components/pathItems/photos" }
components: { pathItems: { photos: { put: ${OK} } } }
`;
const SCOPED = `openapi: 3.1.1
${INFO}
servers: [{ url: /api/v1 }]
security: [{ oauth: ["pets:read"] }]
paths:
  /pets:
    get: ${OK}
    options: ${OK}
    post: { security: [{ oauth: ["pets:write"] }, { key: ["pets:write"] }] }
  /pets/mine: { delete: { security: [{ key: [] }] } }
webhooks: { newPet: { post: ${OK} } }
`;
const QUERIES = JSON.stringify({
  openapi: '3.2.0',
  paths: {
    '/flights/search': { query: {}, additionalOperations: { PROPFIND: {}, LINK: {} } },
    '/b': { $ref: '#/paths/~1flights~1search' },
  },
  security: [{ key: [] }],
});
/** As long paths, dots and neighbours of parameters are in descriptions of large APIs. */
const NEIGHBOURS = pathsOf(
  `/repos/{owner}/{repo}/commits/{ref}/check-runs: { get: ${OK} }`,
  `/repos/{owner}/{repo}/commits: { get: ${OK} }`,
  `/v1/files.json: { post: ${OK} }`,
  `/v1/accounts/{account}: { delete: ${OK}, get: ${OK}, post: ${OK} }`,
  `/v1/accounts/default: { get: ${OK} }`,
);
/** A path of a description, as its line names it. */
const keyOf = (line: string) => line.replace(/: .*|:$/, '');
/** As JSON pointer and words, like a line of the program. */
function asText({ place, what }: { place: readonly (string | number)[]; what: string }): string {
  const steps = place.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`);
  return printable(`${steps.join('')}: ${what}`);
}
const own = (name: string) => fileURLToPath(new URL(`../../docs/openapi/${name}`, import.meta.url));
const pathsIn = (name: string) => Object.keys(parse(readFileSync(own(name), 'utf8')).paths).length;

describe.each<[string, string, Described[] | number, string[]]>([
  [
    'a description in 3.0, with variables, references and parameters of any name',
    PETSTORE,
    [
      { path: '/v3/pets', methods: ['GET', 'POST'] },
      { path: '/v3/pets/{petId}/photos/{_2nd}', methods: ['PUT'] },
      { path: '/v3/pets/{pet_id}', methods: ['GET'] },
    ],
    ['/pets', '/v3', '/v3/pets/', '/v3/pets/5/photos', '/v3/PETS'],
  ],
  [
    'a description in 3.1, with scopes',
    SCOPED,
    [
      { path: '/api/v1/pets', methods: ['GET', 'OPTIONS'], scope: 'pets:read' },
      { path: '/api/v1/pets', methods: ['POST'], scope: 'pets:write' },
      { path: '/api/v1/pets/mine', methods: ['DELETE'] },
    ],
    ['/api/v1/pets/5', '/api/v1/newPet', '/pets'],
  ],
  [
    'a description in 3.2 as JSON, with methods of any name',
    QUERIES,
    [
      { path: '/b', methods: ['QUERY', 'PROPFIND', 'LINK'] },
      { path: '/flights/search', methods: ['QUERY', 'PROPFIND', 'LINK'] },
    ],
    ['/flights', '/flights/search/x'],
  ],
  ['paths beside each other', NEIGHBOURS, 5, ['/repos/a/b', '/v1/files', '/v1/accounts', '/v1/accounts/Default']],
  ['the admin API', own('admin.yaml'), pathsIn('admin.yaml'), ['/admin/v1', '/admin/v1/customers/a/nothing']],
  ['the portal API', own('portal.yaml'), pathsIn('portal.yaml'), ['/portal', '/']],
])('%s', (_, description, expected, elsewhere) => {
  it('is forwarded as described, and nothing else is', async () => {
    const file = description.endsWith('.yaml') ? description : await temporaryFile('openapi', description);
    const { status, stdout } = await tollgateHere('routes', file);
    expect(status).toBe(0);
    const { routes } = parse(stdout) as { routes: Described[] };
    if (typeof expected === 'number') expect(new Set(routes.map(({ path }) => path)).size).toBe(expected);
    else expect(routes).toEqual(expected);
    expect(routes.map(({ path }) => path)).toEqual(routes.map(({ path }) => path).toSorted());

    const sections = { routes, aliases: {}, usage_path: '/of-the-gateway/usage' };
    const config = sections as unknown as NonNullable<SystemSettings['config']>;
    const customer = { id: 'acme', plan: 'enterprise', requests_per_hour: 10_000 };
    const { backend, gateway, key } = await startSystem({ config, customer });
    const statusOf = async (method: string, path: string) =>
      (await fetch(gateway.public + path, { method, headers: bearer(key) })).status;
    for (const { path, methods } of routes) {
      const sent = path.replace(/\{\w+\}/g, 'x1');
      for (const method of methods) expect([method, path, await statusOf(method, sent)]).toEqual([method, path, 200]);
      expect(backend.seen.at(-1)).toMatchObject({ method: methods.at(-1), url: sent });
      expect(await statusOf('REPORT', sent)).toBe(405);
    }
    for (const path of elsewhere) expect([path, await statusOf('GET', path)]).toEqual([path, 404]);
  });
});

describe('what routes cannot express is a warning with its place', () => {
  const FINE = `/fine: { get: ${OK} }`;
  const CASES: [string, string][] = [
    [`/a/{b}.json: { get: ${OK} }`, '/paths/~1a~1{b}.json: left out: routes have no partial segments'],
    [`/a/{b+}: { get: ${OK} }`, '/paths/~1a~1{b+}: left out: routes have no partial segments'],
    [`/a/: { get: ${OK} }`, '/paths/~1a~1: left out: routes have no partial segments'],
    [`/a?b=c: { get: ${OK} }`, '/paths/~1a?b=c: left out: routes have no partial segments'],
    [`"/a~/..": { get: ${OK} }`, '/paths/~1a~0~1..: left out: routes have no partial segments'],
    [`a: { get: ${OK} }`, '/paths/a: left out: routes have no partial segments'],
    [`"/\\e[31m": { get: ${OK} }`, '/paths/~1\\u{1b}[31m: left out'],
    [`/a: { trace: ${OK} }`, '/paths/~1a/trace: left out: routes do not forward this method'],
    [`/a: { additionalOperations: { Paint: ${OK} } }`, '/paths/~1a/additionalOperations/Paint: left out'],
    [`/a: { servers: [{ url: /b }], get: ${OK} }`, '/paths/~1a: has servers of its own'],
    ['/a: { get: { servers: [{ url: /b }] } }', '/paths/~1a/get: has servers of its own'],
    ['/a: { get: { security: [{ k: [x, y] }] } }', '/paths/~1a/get: its security names 2 scopes'],
    ['/a: { get: { security: [{ k: [x] }, { k: [y] }] } }', '/paths/~1a/get: its security names 2 scopes'],
    ['/a: { get: { security: [{ k: ["x y"] }] } }', '/paths/~1a/get: its security names a scope that is not 1 to 128'],
    ['/a: { get: { security: [] } }', '/paths/~1a/get: has no security, or an optional one: its route needs'],
    ['/a: { get: { security: [{ k: [x] }, {}] } }', '/paths/~1a/get: has no security, or an optional one'],
    ['/a: { get: { security: [{ k: [x] }] }, head: {} }', '/paths/~1a: HEAD has another scope than GET'],
    ['/a: { $ref: "other.yaml#/a" }', '/paths/~1a: left out: its $ref leads to another document'],
    ['/a: { $ref: "#/paths/~1a" }', '/paths/~1a: left out: its $ref leads in a circle'],
    ['/a: { $ref: "#/constructor/%zz" }', '/paths/~1a: left out: it has a $ref that leads to nothing'],
    ['/a:', '/paths/~1a: left out: it is not a mapping'],
    ['/a: { get: [] }', '/paths/~1a/get: left out: it is not a mapping'],
    ['__proto__: { get: {} }', '/paths/__proto__: left out: routes have no partial segments'],
  ];

  it('each alone', () => {
    for (const [path, warning] of CASES) {
      const { routes, warnings } = routesFromOpenApi(parse(pathsOf(path, FINE)), undefined, 'openapi.yaml');
      expect(warnings.map(asText), path).toEqual([expect.stringContaining(warning)]);
      expect(routes).toContainEqual({
        unsecured: [],
        path: '/fine',
        methods: ['GET'],
        scope: undefined,
        place: ['paths', '/fine'],
      });
    }
  });

  it('all those of different paths together, each with its line', async () => {
    const distinct = CASES.filter(
      ([path], index) => CASES.findIndex(([other]) => keyOf(other) === keyOf(path)) === index,
    );
    const file = await temporaryFile('openapi.yaml', `${pathsOf(...distinct.map(([path]) => path), FINE)}\n`);
    const { status, stdout, stderr } = await tollgateHere('routes', file);
    const expected = distinct.map(([, warning], index) =>
      expect.stringContaining(`${file}:${index + 5}: warning: ${warning}`),
    );
    expect(stderr.split('\n')).toEqual(expect.arrayContaining([...expected, '']));
    expect(status).toBe(0);
    expect(stdout).toContain('path: "/fine", methods: [GET]');
  });

  it('templates that match the same paths become one route, and a method of both is left out', async () => {
    const paths = [`/a/{x}: { get: ${OK} }`, `/a/{y}: { get: ${OK}, put: ${OK} }`];
    const file = await temporaryFile('openapi.yaml', pathsOf(...paths));
    const { stdout, stderr } = await tollgateHere('routes', file);
    expect(stdout).toBe('routes:\n  - { path: "/a/{x}", methods: [GET, PUT] }\n');
    expect(stderr).toContain(`${file}:6: warning: /paths/~1a~1{y}: matches the same paths as /a/{x}`);
    expect(stderr).toContain(`${file}:6: warning: /paths/~1a~1{y}/get: left out: the method is described twice`);
  });

  it('the path of the first server counts, unless --base is given', async () => {
    const servers = 'servers: [{ url: "https://a.example/v1" }, { url: "https://b.example/v2/" }]';
    const file = await temporaryFile('openapi.yaml', `${pathsOf(FINE)}\n${servers}`);
    const first = await tollgateHere('routes', file);
    expect(first.stdout).toContain('"/v1/fine"');
    expect(first.stderr).toContain(
      ':6: warning: /servers: has 2 servers; routes begin with the path of the first one, "/v1"',
    );
    expect(await tollgateHere('routes', file, '--base', '/api/')).toMatchObject({
      stdout: expect.stringContaining('"/api/fine"'),
      stderr: '',
    });
    expect((await tollgateHere('routes', file, '--base', '/{x}')).status).toBe(2);
  });
});

describe('a file without use ends with words', () => {
  const bomb = [...'bcdefgh'].map((name, index) => `${name}: &${name} [${Array(9).fill(`*${'abcdefg'[index]}`)}]`);
  const many = (count: number) =>
    JSON.stringify({
      openapi: '3.0.0',
      paths: Object.fromEntries(Array.from({ length: count }, (_, index) => [`/a${index}/{id}`, { get: {} }])),
    });

  it.each<[string, string, string]>([
    ['Swagger 2', 'swagger: "2.0"\npaths: {}', '/swagger: is Swagger 2, which has another form'],
    ['another version', 'openapi: 4.0.0\npaths: {}', '/openapi: must be a version of OpenAPI from 3.0 to 3.2'],
    ['no paths', `openapi: 3.1.0\nwebhooks: {}`, '/paths: must be a mapping'],
    ['no operation', `openapi: 3.1.0\npaths: { /a: {} }`, '/paths: has no operation that a route can forward'],
    [
      'a server with a variable without default',
      'openapi: 3.0.0\npaths: {}\nservers: [{ url: "https://a/{v}", variables: { v: {} } }]',
      '/servers/0/url: has no path that can begin a route; give one with --base',
    ],
    [
      'a reference to itself alone',
      'openapi: 3.0.0\npaths: { /a: { $ref: "#/paths/~1a" } }',
      '/paths: has no operation',
    ],
  ])('%s', (_, content, fault) => {
    const read = () => routesFromOpenApi(parse(content), undefined, 'openapi.yaml');
    expect(read).toThrow(UnusableDescriptionError);
    expect(read).toThrow(
      expect.toSatisfy((error: UnusableDescriptionError) =>
        asText({ place: error.place, what: error.message }).startsWith(fault),
      ),
    );
  });

  it.each<[string, string | Uint8Array, string]>([
    [
      'an unusable member',
      'openapi: 3.1.0\npaths: { /a: {} }',
      ':2: /paths: has no operation that a route can forward',
    ],
    ['text', 'hello', ':1: is not an OpenAPI description'],
    ['nothing', '', ':1: is not an OpenAPI description'],
    ['JSON with a fault', '{\n"openapi": "3.0.0",\n"paths": {]', ':3: is not valid YAML: '],
    ['a key given twice', 'openapi: 3.0.0\npaths: {}\npaths: {}', ':3: is not valid YAML: Map keys must be unique'],
    ['aliases of aliases', `a: &a [x]\n${bomb.join('\n')}`, ': Excessive alias count'],
    ['deep nesting', '['.repeat(10_000), ':1: is not valid YAML: it is nested too deeply'],
    ['more than 10,000 paths', many(10_001), ': /paths: has more than 10000 paths'],
    ['not UTF-8', Buffer.from('openapi: 3.0.0', 'utf16le').fill(0xff, 4, 6), ': cannot be read: it is not UTF-8 text'],
    ['more than 16 MiB', Buffer.alloc(16 * 1024 * 1024 + 1, '#'), ': cannot be read: it is larger than 16 MiB'],
  ])('%s', async (_, content, fault) => {
    const file = await temporaryFile('openapi', content);
    const { status, stdout, stderr } = await tollgateHere('routes', file);
    expect([status, stdout]).toEqual([1, '']);
    expect(stderr.split('\n').find((line) => !line.includes('warning'))).toContain(file + fault);
  });

  it('10,000 paths are fine', async () => {
    const { stdout } = await tollgateHere('routes', await temporaryFile('openapi.json', many(10_000)));
    expect(stdout.split('\n')).toHaveLength(10_002);
  });

  it('a file that is not there, and a URL with a password', async () => {
    expect(await tollgateHere('routes', '/nowhere.yaml')).toMatchObject({
      status: 1,
      stderr: '/nowhere.yaml: cannot be read: there is no such file\n',
    });
    expect(await tollgateHere('routes', 'http://a:b@127.0.0.1/x')).toMatchObject({ status: 2 });
  });
});

it('a URL is read without redirects and up to 16 MiB, and relative servers refer to it', async () => {
  const url = await startServer(async (req, res) => {
    if (req.url === '/docs/openapi') return res.end(`${pathsOf(`/a: { get: ${OK} }`)}\nservers: [{ url: ../v1 }]`);
    if (req.url === '/moved') return res.writeHead(302, { location: '/docs/openapi' }).end();
    if (req.url !== '/large') return res.writeHead(404).end();
    for (;;) if (!res.write('#'.repeat(65_536))) await once(res, 'drain');
  });
  const fault = async (path: string) => (await tollgateHere('routes', url + path)).stderr.replace(url, '');
  expect(await tollgateHere('routes', `${url}/docs/openapi`)).toEqual({
    status: 0,
    stdout: 'routes:\n  - { path: "/v1/a", methods: [GET] }\n',
    stderr: '',
  });
  expect(await fault('/moved')).toBe('/moved: cannot be read: the server answers 302 and redirects to /docs/openapi\n');
  expect(await fault('/none')).toBe('/none: cannot be read: the server answers 404\n');
  expect(await fault('/large')).toBe('/large: cannot be read: it is larger than 16 MiB\n');
  expect(await tollgateHere('routes', 'http://127.0.0.1:1/')).toMatchObject({ status: 1 });
});

it('a scope is text, even if it looks like a variable of the gateway, which a 403 would show to clients', async () => {
  const file = await temporaryFile('openapi.yaml', pathsOf(`/a: { get: { security: [{ key: ["\${HOME}"] }] } }`));
  const { stdout } = await tollgateHere('routes', file);
  expect(stdout).toContain('scope: "$${HOME}"');
  const config = await temporaryFile('gateway.yaml', stdout);
  expect(await tollgateHere('routes', file, '--check', config)).toMatchObject({ status: 0 });
});

it('--check compares with a config file, whatever else that file needs', async () => {
  const description = await temporaryFile('pets.yaml', SCOPED);
  const check = async (...routes: string[]) => {
    // Variables that are not set, of sections that do not matter.
    const head = `store: { url: "\${NOT_SET}" }\nupstream: { urls: ["\${NOT_SET}"] }\nroutes:\n`;
    const file = await temporaryFile('gateway.yaml', head + routes.map((route) => `  - ${route}\n`).join(''));
    const { status, stdout, stderr } = await tollgateHere('routes', description, '--check', file);
    return [
      status,
      ...(stdout + stderr)
        .replaceAll(file, basename(file))
        .replaceAll(description, basename(description))
        .trim()
        .split('\n'),
    ];
  };
  const mine = '{ path: /api/v1/pets/mine, methods: [DELETE] }';
  const reading = '{ path: /api/v1/pets, methods: [OPTIONS, HEAD, GET], scope: "pets:read" }';
  const writing = '{ path: /api/v1/pets, methods: [POST], scope: "pets:write" }';
  expect(await check(mine, writing, reading)).toEqual([0, 'gateway.yaml has the routes of pets.yaml.']);
  expect(
    await check('{ path: "/{rest...}", methods: [GET] }', '{ path: /api/v1/pets, methods: [GET, PUT, POST] }'),
  ).toEqual([
    1,
    'gateway.yaml:3: missing: /api/v1/pets/mine [DELETE], as in pets.yaml:10',
    'gateway.yaml:4: superfluous: /{rest...} [GET]',
    'gateway.yaml:5: differing: /api/v1/pets: GET has no scope instead of pets:read, OPTIONS is missing, POST has no scope instead of pets:write, PUT is superfluous',
  ]);
  expect(await check('{ path: x, methods: [GET] }')).toEqual([
    1,
    expect.stringContaining('gateway.yaml:4: routes[0].path: must be "/"'),
  ]);
});

it('--check accepts key: none where the description has no security, and preflight requests that it does not name', async () => {
  const description = pathsOf(
    '/pets: { get: { security: [{ oauth: [read] }] }, post: {} }',
    '/health: { get: { security: [] }, put: { security: [{}, { key: [] }] }, delete: {} }',
  );
  const file = await temporaryFile('openapi.yaml', description);
  const check = async (...routes: string[]) => {
    const config = await temporaryFile('gateway.yaml', `routes:\n${routes.map((route) => `  - ${route}\n`).join('')}`);
    const { status, stdout } = await tollgateHere('routes', file, '--check', config);
    return [status, stdout.trim().replaceAll(config, 'gateway.yaml').replaceAll(file, 'openapi.yaml')];
  };
  const health = '{ path: /health, methods: [GET, PUT], key: none }';
  const pets = '{ path: /pets, methods: [GET], scope: read }';
  const others = ['{ path: /health, methods: [DELETE] }', '{ path: /pets, methods: [POST] }'];
  const preflights = [
    '{ path: /pets, methods: [OPTIONS], key: none }',
    '{ path: "/{x...}", methods: [OPTIONS], key: none }',
  ];
  expect(await check(health, pets, ...others, ...preflights)).toEqual([0, expect.stringContaining('has the routes')]);
  const [keyed] = await check('{ path: /health, methods: [GET, PUT, DELETE] }', pets, ...others.slice(1));
  expect(keyed).toBe(0);
  expect(
    await check(
      '{ path: /health, methods: [GET, DELETE], key: none }',
      '{ path: /health, methods: [PUT] }',
      '{ path: /pets, methods: [GET], key: none }',
      '{ path: /pets, methods: [POST, OPTIONS] }',
      '{ path: /open, methods: [GET, OPTIONS], key: none }',
    ),
  ).toEqual([
    1,
    [
      'gateway.yaml:6: superfluous: /open [GET, OPTIONS]',
      'gateway.yaml:2: differing: /health: DELETE has key: none',
      'gateway.yaml:4: differing: /pets: GET has key: none, OPTIONS is superfluous',
    ].join('\n'),
  ]);
});
