// biome-ignore-all lint/suspicious/noTemplateCurlyInString: what the configuration's own substitutions look like
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { load, MINIMAL, problemsOf, withFolder } from './support.ts';

const SECTIONS =
  'listen, ops, admin, portal, check, console, workers, store, upstream, upstreams, routes, aliases, usage_path, usage, requests, notices, tracing, documentation_url, plans, overrides, auth, identity, limits, shutdown, logging';
const METHOD_RULE =
  'must be a method that Node.js can parse, in capitals, one of ACL, BIND, CHECKOUT, COPY, DELETE, GET, HEAD, LINK, LOCK, M-SEARCH, MERGE, MKACTIVITY, MKCALENDAR, MKCOL, MOVE, NOTIFY, OPTIONS, PATCH, POST, PROPFIND, PROPPATCH, PURGE, PUT, QUERY, REBIND, REPORT, SEARCH, SOURCE, SUBSCRIBE, UNBIND, UNLINK, UNLOCK, UNSUBSCRIBE';
const SEGMENTS = 'segments of A-Z a-z 0-9 . _ ~ -';

/** What is put below the minimal configuration, so from line 3 on, and the one problem that it has. */
const ONE_PROBLEM: readonly (readonly [yaml: string, problem: string])[] = [
  ['color: red', `3: color: unknown key; known here: ${SECTIONS}`],
  ['console: { name: "" }', '3: console.name: must be 1 to 80 characters without control characters'],
  ['console: { color: pink }', '3: console.color: must be one of gray, red, orange, green, blue, purple'],
  ['rotues: []', `3: rotues: unknown key, perhaps routes is meant; known here: ${SECTIONS}`],
  ['__proto__: {}', '3: __proto__: is a name that cannot be used; choose another'],
  ['ops:\n  host: 127.0.0.1\n  prot: 1', '5: ops.prot: unknown key, perhaps port is meant; known here: host, port'],
  ['workers: 0', '3: workers: must be an integer from 1 to 1024, or "auto", got 0'],
  ['workers: all', '3: workers: must be an integer from 1 to 1024, or "auto", got text'],
  ['listen:', '3: listen: must be a mapping with the keys of this section, got nothing'],
  ['listen: 8080', '3: listen: must be a mapping with the keys of this section, got a single value'],
  ['listen:\n  port: "8080"', '4: listen.port: must be an integer from 0 to 65535, got text; remove the quotes'],
  ['listen: { port: 65536 }', '3: listen.port: must be an integer from 0 to 65535, got 65536'],
  ['listen: { port: 80.5 }', '3: listen.port: must be an integer from 0 to 65535, got 80.5'],
  ['listen: { host: 1.2.3 }', '3: listen.host: must be an IP address (IPv6 without brackets) or a host name'],
  ['listen: { host: "[::1]" }', '3: listen.host: must be an IP address (IPv6 without brackets) or a host name'],
  ['listen: { trusted_proxies: 10.0.0.1 }', '3: listen.trusted_proxies: must be a list, got a single value'],
  [
    'listen:\n  trusted_proxies:\n    - 10.0.0.0/8\n    - 10.0.0.0/33',
    '6: listen.trusted_proxies[1]: must be an IP address or a CIDR block such as 10.0.0.0/8',
  ],
  [
    'listen: { keep_alive_timeout_ms: 0 }',
    '3: listen.keep_alive_timeout_ms: must be an integer of milliseconds from 1 to 2147483647, got 0',
  ],
  ['ops: { port: 8080 }', '3: ops.port: is the port of listen too, on the same address; use another port'],
  [
    'listen: { host: 127.0.0.1, port: 8081 }',
    '3: listen.port: is the port of ops too, on the same address; use another port',
  ],
  ['admin: { port: 8081 }', '3: admin.port: is the port of ops too, on the same address; use another port'],
  [
    'admin: { token: two words }',
    '3: admin.token: must be printable ASCII without spaces, or no request could carry it',
  ],
  ['admin: { token: [a] }', '3: admin.token: must be text; put it in quotes'],
  [
    'routes: [{ path: /a, methods: [GET], deprecated_at: 2026-01-01T00:00:00Z, sunset_at: 2025-12-31T23:59:59Z }]',
    '3: routes[0].sunset_at: must not be before deprecated_at',
  ],
  [
    'routes: [{ path: /a, methods: [GET], deprecated_at: 2026-01-01 }]',
    '3: routes[0].deprecated_at: must be an ISO 8601 time with a zone, such as 2030-01-31T00:00:00Z',
  ],
  [
    'routes: [{ path: /a, methods: [GET], sunset_at: 2026-02-30T00:00:00Z }]',
    '3: routes[0].sunset_at: must be an ISO 8601 time with a zone, such as 2030-01-31T00:00:00Z',
  ],
  ...['/v2', 'https://a.example/<v2>', 'https://user:secret@a.example/', 'ftp://a.example/', 'https://a.example/ü'].map(
    (successor) =>
      [
        `routes: [{ path: /a, methods: [GET], successor: "${successor}" }]`,
        '3: routes[0].successor: must be an absolute http:// or https:// URL of at most 1024 characters of RFC 3986, without credentials',
      ] as const,
  ),
  ['routes: []', '3: routes: must have at least one route'],
  [
    'routes:\n  - { path: /a, methods: [GET], key: none,\n      scope: read }',
    '5: routes[0].scope: is a scope of keys, and this route has key: none; remove one of the two',
  ],
  [
    'routes:\n  - { path: /a, methods: [GET], key: none,\n      units: 1 }',
    '5: routes[0].units: is taken from a quota of a customer, and this route has key: none; remove one of the two',
  ],
  ...Object.entries({ '-1': '-1', 1001: '1001', 2.5: '2.5', '"5"': 'text; remove the quotes', '[5]': 'a list' }).map(
    ([units, got]): [string, string] => [
      `routes:\n  - path: /a\n    methods: [GET]\n    units: ${units}`,
      `6: routes[0].units: must be an integer of units from 0 to 1000, got ${got}`,
    ],
  ),
  ['routes:\n  - { path: /a, methods: [GET], key: optional }', '4: routes[0].key: must be one of required, none'],
  [
    'routes:\n  - path: api\n    methods: [GET]',
    `4: routes[0].path: must be "/", or begin with "/" and have ${SEGMENTS} or one {name}, the last also {name...}, each name once, no "." or "..", and no "/" at the end`,
  ],
  [
    'routes:\n  - path: /api/../x\n    methods: [GET]',
    `4: routes[0].path: must be "/", or begin with "/" and have ${SEGMENTS} or one {name}, the last also {name...}, each name once, no "." or "..", and no "/" at the end`,
  ],
  [
    'routes:\n  - path: /a/{x}/{x}\n    methods: [GET]',
    `4: routes[0].path: must be "/", or begin with "/" and have ${SEGMENTS} or one {name}, the last also {name...}, each name once, no "." or "..", and no "/" at the end`,
  ],
  [
    'routes:\n  - path: /a/{x...}/b\n    methods: [GET]',
    `4: routes[0].path: must be "/", or begin with "/" and have ${SEGMENTS} or one {name}, the last also {name...}, each name once, no "." or "..", and no "/" at the end`,
  ],
  [
    'routes:\n  - path: /a/{x}/{x...}\n    methods: [GET]',
    `4: routes[0].path: must be "/", or begin with "/" and have ${SEGMENTS} or one {name}, the last also {name...}, each name once, no "." or "..", and no "/" at the end`,
  ],
  ...['/books/:id', '/reports/*'].map(
    (path) =>
      [
        `routes:\n  - { path: "${path}", methods: [GET] }`,
        `4: routes[0].path: must be "/", or begin with "/" and have ${SEGMENTS} or one {name}, the last also {name...}, each name once, no "." or "..", and no "/" at the end; write {id} instead of :id, and {rest...} instead of *`,
      ] as const,
  ),
  ['routes:\n  - { path: /a, methods: [GET, CONNECT] }', `4: routes[0].methods[1]: ${METHOD_RULE}`],
  ['routes:\n  - { path: /a, methods: [TRACE] }', `4: routes[0].methods[0]: ${METHOD_RULE}`],
  ['routes:\n  - { path: /a, methods: [post] }', `4: routes[0].methods[0]: ${METHOD_RULE}`],
  ['routes:\n  - { path: /a, methods: [PAINT] }', `4: routes[0].methods[0]: ${METHOD_RULE}`],
  [
    'routes:\n  - { path: /a, methods: [PUT], max_body_bytes: -1 }',
    '4: routes[0].max_body_bytes: must be an integer of bytes of at least 0, got -1',
  ],
  ['routes:\n  - { path: /a, methods: [] }', '4: routes[0].methods: must have at least one method'],
  ['routes:\n  - { path: /a }', '4: routes[0].methods: is required and must be a list'],
  [
    'routes:\n  - { path: "/a/{x}", methods: [GET] }\n  - { path: "/a/{y}", methods: [GET] }',
    '5: routes[1].path: matches the same paths as routes[0].path, which has GET too; keep one',
  ],
  [
    'routes:\n  - { path: "/a/{x...}", methods: [POST, PUT] }\n  - { path: "/a/{y...}", methods: [GET, PUT] }',
    '5: routes[1].path: matches the same paths as routes[0].path, which has PUT too; keep one',
  ],
  [
    'routes:\n  - { path: /a, methods: [GET] }\n  - { path: /a, methods: [PUT] }\n  - { path: /a, methods: [HEAD] }',
    '6: routes[2].path: matches the same paths as routes[0].path, which has HEAD too; keep one',
  ],
  [
    'aliases: { /v1/: /api/v1 }',
    `3: aliases["/v1/"]: the name must begin with "/" and have ${SEGMENTS} only, no "." or "..", and no "/" at the end`,
  ],
  [
    'aliases: { /v1: /api/v2 }',
    '3: aliases["/v1"]: must name the prefix of a route, and no route is at or below the given one',
  ],
  [
    'portal: { public_url: "https://keys.example.com" }',
    '3: portal: needs the section admin: its API makes the links to the portal',
  ],
  [
    'admin: {}\nportal: {}',
    '4: portal.public_url: is required and must be https://host[:port], without path and credentials',
  ],
  [
    'admin: {}\nportal: { public_url: "https://keys.example.com/portal" }',
    '4: portal.public_url: must be https://host[:port], without path and credentials',
  ],
  [
    'admin: {}\nportal: { public_url: "https://keys.example.com", port: 8082 }',
    '4: portal.port: is the port of admin too, on the same address; use another port',
  ],
  [
    'admin: {}\nportal: { public_url: "https://keys.example.com", accent_color: red }',
    '4: portal.accent_color: must be "#" and six hex digits, in quotes',
  ],
  [
    'aliases: { /api: /api/v1 }',
    '3: aliases["/api"]: is a prefix of a route already; an alias must be a prefix that no route has',
  ],
  [
    'aliases:\n  /a: /api\n  /a/b: /api',
    '5: aliases["/a/b"]: is below another alias; aliases must not contain each other',
  ],
  [
    'plans:\n  starter:\n    requests_per_hour: many',
    '5: plans.starter.requests_per_hour: must be an integer of at least 1 or "custom", got text',
  ],
  [
    'plans: { starter: {} }',
    '3: plans.starter.requests_per_hour: is required and must be an integer of at least 1 or "custom"',
  ],
  [
    'plans: { none: { requests_per_hour: 1 } }',
    '3: plans.none: the name must be 1 to 64 characters of A-Z a-z 0-9 . _ -, begin with a letter or digit, and not be none, unknown or unchecked',
  ],
  [
    'plans:\n  a: { requests_per_hour: 1, period: { per: week, requests: 1 } }',
    '4: plans.a.period.per: must be one of day, month',
  ],
  [
    'plans: { a: { requests_per_hour: 1, period: { per: day } } }',
    '3: plans.a.period.requests: is required and must be an integer of at least 1 or "custom"',
  ],
  [
    'plans: { a: { requests_per_hour: 1, period: { per: day, requests: 0 } } }',
    '3: plans.a.period.requests: must be an integer of at least 1, got 0',
  ],
  [
    'plans: { a: { requests_per_hour: 1, period: { per: day, requests: 1, beyond: bill } } }',
    '3: plans.a.period.beyond: must be one of refuse, allow',
  ],
  [
    'plans: { a: { period: { per: day, requests: 1 } } }',
    '3: plans.a.requests_per_hour: is required and must be an integer of at least 1 or "custom"',
  ],
  ['overrides:\n  acme: {}', '4: overrides.acme: must have requests_per_hour or period_requests'],
  [
    'overrides:\n  acme:\n    period_requests: custom',
    '5: overrides.acme.period_requests: must be an integer of at least 1, got text',
  ],
  [
    'overrides: { acme: { requests_per_hour: 0 } }',
    '3: overrides.acme.requests_per_hour: must be an integer of at least 1, got 0',
  ],
  [
    'overrides: { acme: { requests_per_hour: custom } }',
    '3: overrides.acme.requests_per_hour: must be an integer of at least 1, got text',
  ],
  [
    'overrides: { -a: { requests_per_hour: 1 } }',
    '3: overrides.-a: the name must be 1 to 128 characters of A-Z a-z 0-9 . _ : @ -, and begin with a letter or digit',
  ],
  [
    'overrides:\n  a: { requests_per_hour: 1 }\n  a: { requests_per_hour: 2 }',
    '5: overrides.a: is given twice, first on line 4; keep one',
  ],
  [
    "auth: { realm: 'a\"b' }",
    '3: auth.realm: must be 1 to 128 printable ASCII characters without quotes and backslashes',
  ],
  [
    'documentation_url: /errors',
    '3: documentation_url: must be http:// or https://, at most 1024 characters, without credentials; {code} stands for the code of the problem',
  ],
  ['auth: { failures_per_minute: 0 }', '3: auth.failures_per_minute: must be an integer of at least 1, got 0'],
  ['auth: { browser_keys: deny }', '3: auth.browser_keys: must be one of allow, warn, reject'],
  ['identity: { headers: yes }', '3: identity.headers: must be true or false, got text'],
  ['limits: { headers_timeout_ms: 30001 }', '3: limits.headers_timeout_ms: must not be above request_timeout_ms'],
  [
    'limits: { headers_timeout_ms: 2, request_timeout_ms: 1 }',
    '3: limits.request_timeout_ms: must not be below headers_timeout_ms',
  ],
  ['limits: { header_count: 0 }', '3: limits.header_count: must be an integer of at least 1, got 0'],
  [
    'shutdown: { drain_ms: -1 }',
    '3: shutdown.drain_ms: must be an integer of milliseconds from 0 to 2147483647, got -1',
  ],
  ['logging: { level: loud }', '3: logging.level: must be one of trace, debug, info, warn, error, fatal'],
  ['logging: { access: 404 }', '3: logging.access: must be one of all, errors, off'],
  ['ops:\n  port: ${UNSET}', '4: ops.port: environment variable UNSET is not set; set it, or write ${UNSET:-default}'],
  [
    'ops:\n  port: ${A B}',
    '4: ops.port: has a "${" that does not begin ${NAME} or ${NAME:-default}; write $${ for a literal "${"',
  ],
  ['ops:\n  port: ${WORD}', '4: ops.port: must be an integer from 0 to 65535, got the value of ${WORD}'],
  ['ops: { host: *nowhere }', '3: ops.host: uses an alias (*name) whose anchor (&name) is not above it'],
  ['overrides: &a { x: *a }', '3: overrides.x: contains itself by an alias (*name)'],
  ['ops: [', '3: is not valid YAML: flow sequence in block collection must be sufficiently indented and end with a ]'],
  [
    'ops: { port: ${PORT} }',
    '3: is not valid YAML: unexpected text; check the indentation, the quotes and the brackets; within { } and [ ] a ${NAME} must be on its own line, or in quotes if it is text',
  ],
  ['ops:\n\tport: 1', '4: is not valid YAML: the line is indented with a tab; indent it with spaces'],
  ['ops: { port: 1,\n\thost: ::1 }', '4: is not valid YAML: the line is indented with a tab; indent it with spaces'],
  ['ops: { port: !port 1 }', '3: is not valid YAML: a tag (!name) that is not known or does not fit its value'],
  ['---\nops: {}', '3: is not valid YAML: there is more than one document (---) in the file; keep one'],
];

/** Whole files. */
const ONE_PROBLEM_FILES: readonly (readonly [yaml: string, problem: string])[] = [
  ['', 'gateway.yaml:1: is empty; it must have sections such as store: and upstream:'],
  ['# nothing\n', 'gateway.yaml:1: is empty; it must have sections such as store: and upstream:'],
  ['- a\n', 'gateway.yaml:1: is not a mapping; it must have sections such as store: and upstream:'],
  [
    'store: { url: "sqlite:a" }',
    'gateway.yaml:1: upstream: is required, unless every route names a backend of upstreams, or there is a section check',
  ],
  [
    'upstream: { urls: ["http://b"] }',
    'gateway.yaml:1: store.url: is required, as url or url_file: redis://…, redis+sentinel://…, redis+cluster://… or sqlite:FILE',
  ],
];

const STORE_RULE =
  'must be redis://host[:port][/db], redis+sentinel://host[:port],…/master-name[/db], redis+cluster://host[:port],… (with TLS: rediss…) or sqlite:FILE';
const PORT_RULE = 'must have ports from 1 to 65535';
const HOST_RULE = 'must have an IP address (IPv6 in brackets) or a host name before each port';
const ONE_HOST_RULE = 'must name one host; for several write redis+sentinel:// or redis+cluster://';
const MASTER_RULE = "must name the sentinels' master after their addresses: /master-name or /master-name/0";
const DATABASE_RULE = 'must end after the host and port, or with the number of a database: /0';

const STORE_URLS: readonly (readonly [url: string, fault: string])[] = [
  ['http://host', STORE_RULE],
  ['redis:host', STORE_RULE],
  ['redis://', STORE_RULE],
  ['redis://:pw@', STORE_RULE],
  ['redis+x://host', STORE_RULE],
  ['sqlite+cluster://host', STORE_RULE],
  ['redis://h1,h2', ONE_HOST_RULE],
  ['redis://h1:6379,h2:6379/0', ONE_HOST_RULE],
  ['redis://host:0', PORT_RULE],
  ['redis://host:65536', PORT_RULE],
  ['redis://host:', STORE_RULE],
  ['redis://host:port', STORE_RULE],
  ['redis://10.0.0', HOST_RULE],
  ['redis://-host', HOST_RULE],
  ['redis://[10.0.0.1]', HOST_RULE],
  ['redis://::1', STORE_RULE],
  ['redis://ho st', 'must have no white space and no backslash'],
  ['redis://host/db', DATABASE_RULE],
  ['redis://host/0/1', DATABASE_RULE],
  ['redis://user@host', 'must have a password after the user name: user:password@'],
  ['redis+sentinel://a,b', MASTER_RULE],
  ['redis+sentinel://a,b/', MASTER_RULE],
  ['redis+sentinel://a,b/the master', 'must have no white space and no backslash'],
  ['redis+sentinel://a,b/master/db', MASTER_RULE],
  ['redis+sentinel://a,,b/master', STORE_RULE],
  ['redis+sentinel://a,a:26379/master', 'must name each host and port once'],
  ['redis+cluster://a,b/1', 'must end after the hosts and ports: a cluster has no databases'],
  ['redis+cluster://a,b:0', PORT_RULE],
  ['redis://host?commandTimeout=0', 'must have no query and no fragment'],
  ['redis://u:50%@host', 'must have user and password percent-encoded: "%" is written %25'],
  ['sqlite:', 'must name a file: sqlite:FILE, relative to the folder of the configuration'],
  ['sqlite::memory:', 'must name a file: sqlite:FILE, relative to the folder of the configuration'],
  ['sqlite://file', 'must name the file right after "sqlite:", without "//"'],
];

const UPSTREAM_RULE =
  'must be http(s)://host[:port], with a base path of segments of A-Z a-z 0-9 . _ ~ - if need be, without query and credentials';

describe('a problem says where it is, what is wrong and which rule holds', () => {
  test.each(ONE_PROBLEM)('%s', async (yaml, problem) => {
    expect(await problemsOf(MINIMAL + yaml, { WORD: 'secret-word' })).toEqual([`gateway.yaml:${problem}`]);
  });

  test.each(ONE_PROBLEM_FILES)('%j', async (yaml, problem) => {
    expect(await problemsOf(yaml)).toEqual([problem]);
  });

  test.each(STORE_URLS)('store %s', async (url, fault) => {
    const yaml = `upstream: { urls: ["http://b"] }\nstore:\n  url: ${JSON.stringify(url)}`;
    expect(await problemsOf(yaml)).toEqual([`gateway.yaml:3: store.url: ${fault}`]);
  });

  test.each([
    'http://',
    'ftp://host',
    'host:3000',
    'http://host//',
    'http://host//path',
    'http://host/path//',
    'http://host/path?',
    'http://host/path#',
    'http://host/..',
    'http://host/a/../b',
    'http://host/a/./b',
    'http://host/a%2fb',
    'http://host/%2e%2e',
    'http://host/a b',
    'http://host/a\\b',
    'http://host/a;b',
    'http://host/{id}',
    'http://user:pw@host/path',
    'http://host:99999/path',
    'http:/host/path',
    'host/path',
    'http://host?',
    'http://host#',
    'http://user:pw@host',
    'http://host:99999',
    'sample',
    '',
  ])('upstream %j', async (url) => {
    const yaml = `store: { url: "sqlite:a" }\nupstream:\n  urls:\n    - ${JSON.stringify(url)}`;
    expect(await problemsOf(yaml)).toEqual([`gateway.yaml:4: upstream.urls[0]: ${UPSTREAM_RULE}`]);
  });

  test.each([
    ['urls: []', 'urls: must have at least one entry'],
    ['urls: [http://b:80, HTTP://B/]', 'urls[1]: is the same as urls[0]; keep one'],
    ['urls: [http://b/a, http://b, HTTP://B:80/a/]', 'urls[2]: is the same as urls[0]; keep one'],
    ['urls: ["http://b"]\n  balance: random', 'balance: must be one of least_loaded, round_robin'],
    [
      'urls: ["http://b"]\n  health_check: { path: healthz }',
      'health_check.path: must begin with "/" and have 1 to 1024 printable ASCII characters without spaces and "#"',
    ],
    ['urls: http://b', 'urls: must be a list, got a single value'],
    ['urls: ["http://b"]\n  total_timeout_ms: 29999', 'total_timeout_ms: must not be below response_timeout_ms'],
    [
      'urls: ["http://b"]\n  authorization: Basic eDp5',
      'authorization: is used only with credentials: replace; remove it or set that',
    ],
    [
      'urls: ["http://b"]\n  credentials: replace',
      'authorization: is required, here or by authorization_file, with credentials: replace',
    ],
    [
      'urls: ["http://b"]\n  credentials: replace\n  authorization: "a\\r\\nb"',
      'authorization: must be printable ASCII, without leading or trailing spaces',
    ],
  ])('upstream with %s', async (yaml, problem) => {
    const [found, ...more] = await problemsOf(`store: { url: "sqlite:a" }\nupstream:\n  ${yaml}`);
    expect(more).toEqual([]);
    expect(found?.replace(/^gateway\.yaml:\d+: /, '')).toBe(`upstream.${problem}`);
  });

  test('a file that is not UTF-8', async () => {
    expect(await problemsOf(Uint8Array.of(0x61, 0xff))).toEqual(['gateway.yaml:1: is not UTF-8 text']);
  });

  test('a file that is not there, and one that is a folder', async () => {
    await withFolder({}, async (folder) => {
      const missing = join(folder, 'none.yaml');
      await expect(loadConfig(missing, {})).rejects.toMatchObject({
        name: 'ConfigError',
        problems: [`${missing}: cannot be read: there is no such file`],
      });
      await expect(loadConfig(folder, {})).rejects.toMatchObject({
        problems: [`${folder}: cannot be read: it is a folder`],
      });
    });
  });
});

describe('problems together', () => {
  test('problems of every kind are reported at once, by line', async () => {
    const yaml = [
      'listen:',
      '  port: ${UNSET}',
      '  prot: 1',
      'admin:',
      '  port: 8081',
      '  token_file: missing',
      'aliases:',
      '  /v1: /nowhere',
      'aliases: {}',
      'plans:',
      '  starter: { requests_per_hour: many }',
      'store:',
      '  url: redis:x',
    ].join('\n');
    const problems = await problemsOf(yaml);
    expect(problems.map((problem) => problem.split(' ').slice(0, 2).join(' '))).toEqual([
      'gateway.yaml:1: upstream:',
      'gateway.yaml:2: listen.port:',
      'gateway.yaml:3: listen.prot:',
      'gateway.yaml:5: admin.port:',
      'gateway.yaml:6: admin.token_file:',
      'gateway.yaml:8: aliases["/v1"]:',
      'gateway.yaml:9: aliases:',
      'gateway.yaml:11: plans.starter.requests_per_hour:',
      'gateway.yaml:13: store.url:',
    ]);
  });

  test('a value that breaks its own rule is left out of the rules on combinations', async () => {
    const yaml = [
      'store: { url: "sqlite:a" }',
      'upstream: { urls: ["ftp://a", "ftp://a"] }',
      'routes: [{ path: x, methods: [GET] }, { path: x, methods: [GET] }]',
      'aliases: { /v1: /nowhere }',
    ].join('\n');
    const problems = await problemsOf(yaml);
    expect(problems.map((problem) => problem.split(' ')[0])).toEqual([
      'gateway.yaml:2:',
      'gateway.yaml:2:',
      'gateway.yaml:3:',
      'gateway.yaml:3:',
    ]);
    expect(problems.join()).not.toMatch(/keep one|no route/);
  });

  test('the message of the error has every problem on a line', async () => {
    await expect(load('a: 1\nb: 2')).rejects.toThrow(/:1: a: .*\n.*:2: b: /s);
  });

  test('an unset variable has no second problem, not even where the value is required', async () => {
    const yaml = 'store:\n  url: ${REDIS_URL}\nupstream:\n  urls:\n    - ${UPSTREAM_URL}';
    expect(await problemsOf(yaml)).toEqual([
      'gateway.yaml:2: store.url: environment variable REDIS_URL is not set; set it, or write ${REDIS_URL:-default}',
      'gateway.yaml:5: upstream.urls[0]: environment variable UPSTREAM_URL is not set; set it, or write ${UPSTREAM_URL:-default}',
    ]);
  });
});

describe('what must not be disclosed', () => {
  const marked = 'MARKED-7f3a';
  const env = { MARKED: `${marked} "'\\\n{`, HOST_MARKED: marked };

  test.each([
    `store: redis://u:${marked}@host`,
    `store: { url: "redis://u:${marked}@host/x", url_file: a }`,
    `store: { key_prefix: "redis://u:${marked}@host" }`,
    `store: { url: "http://u:${marked}@host" }`,
    `store: { url: "redis://u:${marked}%@host" }`,
    `upstream: { urls: ["http://u:${marked}@host"] }`,
    `upstream: { urls: "http://u:${marked}@host" }`,
    `upstream: { credentials: replace, authorization: "${marked}\\n" }`,
    `upstream: { authorization: [${marked}] }`,
    `admin: ${marked}`,
    `admin: { token: "${marked} x" }`,
    `admin: { token: "x" "${marked}" }`,
    `admin: { token: "\\q${marked}" }`,
    `admin: { token: !${marked} a }`,
    `admin: { token: "\${${'A B'} ${marked}" }`,
    `admin:\n  token: a\n ${marked}`,
    'listen:\n  port: ${MARKED}\n  host: ${MARKED}\n  trusted_proxies:\n    - ${MARKED}',
    'logging:\n  level: ${HOST_MARKED}\nauth:\n  realm: "\\"${HOST_MARKED}"',
    'aliases:\n  /v1: /${HOST_MARKED}',
    'admin: ${MARKED}',
    'notices:\n  endpoints:\n    - url: ${HOST_MARKED}\n      secret: ${MARKED}',
    'auth:\n  realm: &a "\\"${MARKED}"\nlogging:\n  level: *a',
    'admin:\n  token_file: ${HOST_MARKED}',
    `listen: { host: ${marked}! }`,
    `listen: { port: ${marked} }`,
    `upstream: { urls: [${marked}] }`,
    `upstream: { urls: ["http://backend"], credentials: ${marked} }`,
    `upstream: { urls: ["http://backend"], balance: "\${BALANCE:-${marked}}" }`,
    `store: { url: "redis://127.0.0.1", key_prefix: ${marked}! }`,
    `admin: { host: 0.0.0.0, token: ${marked} }`,
    `admin: ${marked}`,
    `workers: ${marked}`,
    `logging: { level: ${marked} }`,
    `auth: { realm: "${marked}\\"" }`,
    `plans: { starter: { requests_per_hour: ${marked} } }`,
  ])('no problem repeats a secret or the value of a variable: %s', async (yaml) => {
    const problems = await problemsOf(yaml, env);
    expect(problems.join('\n')).not.toContain(marked);
  });
});
