// biome-ignore-all lint/suspicious/noTemplateCurlyInString: what the configuration's own substitutions look like
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { loadConfig, parseConfig } from '../../src/config/load.ts';
import { ConfigError } from '../../src/config/problems.ts';
import { shareOfRuns } from '../support/share-of-runs.ts';
import { load, MINIMAL, problemsOf, withFolder } from './support.ts';

const SHIPPED = resolve(import.meta.dirname, '../../config');
const REQUIRED = { UPSTREAM_URL: 'http://backend:3000', REDIS_URL: 'redis://redis:6379/1' };

describe('the shipped files', () => {
  test('gateway.yaml needs the two addresses only, and has the documented defaults but the realm of its API', async () => {
    const shipped = await loadConfig(join(SHIPPED, 'gateway.yaml'), REQUIRED);
    const minimal = await load(
      'admin: {}\nstore: { url: "redis://redis:6379/1" }\nupstream: { urls: ["http://backend:3000"] }\nauth: { realm: conversations }',
    );
    // These tell of the file, and not of what it sets.
    const {
      file: _file,
      source: _source,
      warnings: _warnings,
      expressions: _expressions,
      limitOrigins: _origins,
      disclosedFile: _disclosedFile,
      ...values
    } = shipped;
    expect(minimal).toMatchObject(values);
    expect(minimal.hash).toBe(shipped.hash);
    expect(shipped).toMatchObject({
      listen: {
        host: '0.0.0.0',
        port: 8080,
        trustedProxies: [],
        trustForwardedHost: false,
        keepAliveTimeoutMs: 75_000,
      },
      ops: { host: '0.0.0.0', port: 8081 },
      admin: { host: '127.0.0.1', port: 8082 },
      store: { url: 'redis://redis:6379/1', keyPrefix: 'tollgate', timeoutMs: 100 },
      upstream: {
        urls: ['http://backend:3000'],
        balance: 'least_loaded',
        connectTimeoutMs: 1000,
        responseTimeoutMs: 30_000,
        idleTimeoutMs: 60_000,
        maxConnections: 256,
        maxConnectionsPerCustomer: 64,
        credentials: 'strip',
        preserveHost: false,
      },
      routes: [
        { path: '/api/v1/conversations', methods: ['GET', 'HEAD'], maxBodyBytes: 1_048_576 },
        { path: '/api/v1/conversations/{id}', methods: ['GET', 'HEAD'], maxBodyBytes: 1_048_576 },
      ],
      auth: { realm: 'conversations', failuresPerMinute: 300, browserKeys: 'warn' },
      identity: { headers: true },
      limits: {
        headerBytes: 16_384,
        headerCount: 100,
        targetBytes: 8192,
        connections: 10_000,
        inFlight: 2048,
        bodyBytes: 1_048_576,
        bodyStallTimeoutMs: 30_000,
        pipelined: 16,
        headersTimeoutMs: 10_000,
        requestTimeoutMs: 30_000,
        responseStallTimeoutMs: 30_000,
      },
      shutdown: { notReadyMs: 5000, drainMs: 20_000 },
      logging: { level: 'info', access: 'all' },
    });
    expect([...shipped.aliases]).toEqual([['/v1', '/api/v1']]);
    expect([...shipped.plans]).toEqual([
      ['starter', { requestsPerHour: 1000 }],
      ['professional', { requestsPerHour: 5000 }],
      ['business', { requestsPerHour: 20_000 }],
      ['enterprise', { requestsPerHour: 'custom' }],
    ]);
    expect(shipped.overrides.size).toBe(0);
    expect(shipped.admin).not.toHaveProperty('token');
  });

  test('gateway.yaml names the variables that it lacks', async () => {
    const problems = await loadConfig(join(SHIPPED, 'gateway.yaml'), {}).catch((error) => error.problems.join('\n'));
    expect(problems).toMatch(/store\.url: environment variable REDIS_URL .*\n.*UPSTREAM_URL is not set/);
  });

  test('any-backend.yaml needs the two addresses only, has no warning, and forwards every method of every path', async () => {
    const env = { ...REQUIRED, TOLLGATE_ADMIN_TOKEN: 'a-token-of-the-tests' };
    const config = await loadConfig(join(SHIPPED, 'any-backend.yaml'), env);
    expect(config.warnings).toEqual([]);
    expect(config.routes).toEqual(
      ['/{rest...}', '/'].map((path) => ({
        path,
        methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
        maxBodyBytes: config.limits.bodyBytes,
        units: 1,
        key: 'required',
        upstream: 'default',
      })),
    );
    expect(config.aliases.size).toBe(0);
  });

  test('the routes that any-backend.yaml suggests are valid beside its own', async () => {
    const text = await readFile(join(SHIPPED, 'any-backend.yaml'), 'utf8');
    const suggested = text.replace(/^ {2}# (?=- | {2}(?:methods|max_body_bytes):)/gm, '  ');
    const config = await parseConfig('any-backend.yaml', Buffer.from(suggested), REQUIRED);
    expect(config.routes.map(({ path }) => path)).toEqual([
      '/{rest...}',
      '/',
      '/files/{name}',
      '/health',
      '/reports/{rest...}',
    ]);
    expect(config.routes[2]?.maxBodyBytes).toBe(104_857_600);
  });

  test.each(['gateway.yaml', 'any-backend.yaml'])(
    '%s, cut off anywhere, loads or is refused in order',
    async (name) => {
      const lines = (await readFile(join(SHIPPED, name), 'utf8')).split('\n');
      // A cut within a comment is a cut before it.
      const content = Buffer.from(lines.filter((line) => !/^\s*#/.test(line)).join('\n'));
      const cuts = shareOfRuns(content.length);
      let refused = 0;
      for (let cut = 0; cut < cuts; cut++) {
        const length = Math.floor((cut * content.length) / cuts);
        if (/(^|\s)#.[^\n]*$/.test(content.toString('utf8', 0, length))) continue;
        try {
          await parseConfig(name, content.subarray(0, length), REQUIRED);
        } catch (error) {
          if (!(error instanceof ConfigError)) throw new Error(`cut off at ${length}`, { cause: error });
          refused++;
        }
      }
      expect(refused).toBeGreaterThan(0);
    },
  );
});

describe('typing', () => {
  test('a plain scalar is typed after substitution, a quoted one stays text', async () => {
    const env = { N: '5', B: 'true', T: 'acme' };
    const yaml = `${MINIMAL}ops:\n  port: \${N}\nidentity:\n  headers: \${B}\nauth:\n  realm: "\${N}"\nlimits:\n  header_count: 1\${N}`;
    const config = await load(yaml, env);
    expect([config.ops.port, config.identity.headers, config.auth.realm, config.limits.headerCount]).toEqual([
      5,
      true,
      '5',
      15,
    ]);
    expect(await problemsOf(`${MINIMAL}ops:\n  port: "\${N}"`, env)).toEqual([
      'gateway.yaml:4: ops.port: must be an integer from 0 to 65535, got the value of ${N}'.concat(
        '; remove the quotes',
      ),
    ]);
  });

  test.each(['12345', '0123', '0x1F', '1e3', 'true', 'null', '~', '.inf', '12345678901234567890'])(
    'a token that reads like another type stays what it is: %s',
    async (token) => {
      const config = await load(`${MINIMAL}admin:\n  token: \${TOKEN}`, { TOKEN: token });
      expect(config.admin?.token).toBe(token);
    },
  );

  test('an empty token is none', async () => {
    for (const yaml of ['token: ${TOKEN:-}', 'token: "${TOKEN:-}"', 'token: ""', 'token_file: ${TOKEN:-}']) {
      const config = await load(`${MINIMAL}admin:\n  ${yaml}`);
      expect(config.admin).toEqual({ host: '127.0.0.1', port: 8082, allowedHosts: [] });
    }
  });

  test('a variable brings in text, never YAML', async () => {
    const config = await load(`${MINIMAL}admin:\n  token: \${TOKEN}`, { TOKEN: '[a]#b:c' });
    expect(config.admin?.token).toBe('[a]#b:c');
  });

  test('customer ids and plan names keep the text of the file', async () => {
    const yaml = `${MINIMAL}plans: { 1: { requests_per_hour: 9 }, true: { requests_per_hour: 8 } }
overrides:
  12345: { requests_per_hour: 1 }
  0123: { requests_per_hour: 2 }
  123: { requests_per_hour: 3 }
  1e3: { requests_per_hour: 4 }
  12345678901234567890: { requests_per_hour: 5 }
  null: { requests_per_hour: 6 }
  constructor: { requests_per_hour: 7 }`;
    const config = await load(yaml);
    expect([...config.overrides].map(([id, { requestsPerHour }]) => `${id}=${requestsPerHour}`).sort()).toEqual(
      ['0123=2', '123=3', '12345=1', '12345678901234567890=5', '1e3=4', 'constructor=7', 'null=6'].sort(),
    );
    expect([...config.plans.keys()].sort()).toEqual(['1', 'true']);
  });

  test('anchors and aliases work, within bounds', async () => {
    const config = await load(`${MINIMAL}listen: &a { host: 127.0.0.1, port: 0 }`.concat('\nops: *a'));
    expect(config.ops).toEqual({ host: '127.0.0.1', port: 0 });
    const levels = Array.from({ length: 9 }, (_, i) => `x${i + 1}: &x${i + 1} [${`*x${i},`.repeat(9)}]`);
    const problems = await problemsOf(`x0: &x0 [1]\n${levels.join('\n')}`);
    expect(problems.some((problem) => problem.includes('repeats too much by aliases'))).toBe(true);
  });

  test('nesting without end is refused', async () => {
    expect(await problemsOf('['.repeat(50_000))).toHaveLength(1);
    expect((await problemsOf(`ops: ${'['.repeat(100)}${']'.repeat(100)}`)).join()).toContain('nested too deeply');
  });
});

describe('secrets in files', () => {
  test('are read relative to the configuration, without the newline at their end', async () => {
    const files = {
      'url.txt': 'redis://:pw@redis:6379\n',
      'token.txt': 'a-token\r\n',
      'authorization.txt': 'Basic eDp5\n',
      'gateway.yaml': [
        'store: { url_file: url.txt }',
        'admin: { token_file: ./token.txt }',
        'upstream: { urls: ["http://b"], credentials: replace, authorization_file: authorization.txt }',
      ].join('\n'),
    };
    await withFolder(files, async (folder) => {
      const config = await loadConfig(join(folder, 'gateway.yaml'), {});
      expect(config.store.url).toBe('redis://:pw@redis:6379');
      expect(config.admin?.token).toBe('a-token');
      expect(config.upstream?.authorization).toBe('Basic eDp5');
    });
  });

  test('are given in one place, which can be read', async () => {
    await withFolder({ token: 'a' }, async (folder) => {
      const yaml = (admin: string) => Buffer.from(`${MINIMAL}admin:\n  ${admin}`);
      const parse = (admin: string) => parseConfig(join(folder, 'g.yaml'), yaml(admin), {});
      const at = `${join(folder, 'g.yaml')}`;
      await expect(parse('token: a\n  token_file: token')).rejects.toMatchObject({
        problems: [`${at}:5: admin.token_file: token is set too; remove one of the two`],
      });
      await expect(parse('token_file: none')).rejects.toMatchObject({
        problems: [
          `${at}:4: admin.token_file: the file cannot be read: there is no such file; a relative name is relative to this file's folder`,
        ],
      });
      await expect(parse('token_file: .')).rejects.toThrow('it is a folder');
      expect((await parse('token: ""\n  token_file: token')).admin?.token).toBe('a');
    });
  });

  test('what they hold is held to the same rules', async () => {
    await withFolder({ url: 'mysql://MARKED' }, async (folder) => {
      const yaml = 'upstream: { urls: ["http://b"] }\nstore: { url_file: url }';
      const error = await parseConfig(join(folder, 'g.yaml'), Buffer.from(yaml), {}).catch((reason) => reason);
      expect(error.message).toMatch(/:2: store\.url_file: must be redis:/);
      expect(error.message).not.toContain('MARKED');
    });
  });
});

describe('the result', () => {
  test('HEAD comes with GET', async () => {
    const yaml = `${MINIMAL}aliases: {}\nroutes:\n  - { path: /a, methods: [GET] }\n  - { path: /b, methods: [HEAD] }`;
    const { routes } = await load(yaml);
    expect(routes.map(({ methods }) => methods)).toEqual([['GET', 'HEAD'], ['HEAD']]);
  });

  test('methods are listed once, GET and HEAD first', async () => {
    const yaml = `${MINIMAL}aliases: {}\nroutes: [{ path: /a, methods: [PUT, HEAD, GET, PUT, M-SEARCH] }]`;
    expect((await load(yaml)).routes[0]?.methods).toEqual(['GET', 'HEAD', 'PUT', 'M-SEARCH']);
  });

  test('a route has its own limit for bodies, or else the general one', async () => {
    const routes = 'routes: [{ path: /a, methods: [PUT], max_body_bytes: 0 }, { path: "/{rest...}", methods: [PUT] }]';
    const config = await load(`${MINIMAL}aliases: {}\n${routes}\nlimits: { body_bytes: 9 }`);
    expect(config.routes.map(({ maxBodyBytes }) => maxBodyBytes)).toEqual([0, 9]);
  });

  test('routes that match some of the same paths are fine', async () => {
    const paths = ['/a/b', '/a/{x}', '/a/{x...}', '/{x}/b', '/{x...}', '/a/{x}/{y...}'];
    const routes = paths.map((path) => `  - { path: "${path}", methods: [GET] }`).join('\n');
    expect((await load(`${MINIMAL}aliases: {}\nroutes:\n${routes}`)).routes).toHaveLength(paths.length);
  });

  test('routes that match the same paths are fine with methods of their own', async () => {
    const entries = [
      '{ path: "/a/{x}", methods: [GET], scope: read }',
      '{ path: "/a/{y}", methods: [PUT], scope: write }',
    ];
    const { routes } = await load(`${MINIMAL}aliases: {}\nroutes: [${entries.join()}]`);
    expect(routes.map(({ methods, scope }) => [methods, scope])).toEqual([
      [['GET', 'HEAD'], 'read'],
      [['PUT'], 'write'],
    ]);
  });

  test('the default alias is there where it fits the routes', async () => {
    const aliasesWith = async (path: string) => [
      ...(await load(`${MINIMAL}routes: [{ path: ${path}, methods: [GET] }]`)).aliases.keys(),
    ];
    expect(await aliasesWith('/api/v1')).toEqual(['/v1']);
    expect(await aliasesWith('/api/v10')).toEqual([]);
    expect(await aliasesWith('/v1/things')).toEqual([]);
  });

  test('the upstream is an origin', async () => {
    const config = await load('store: { url: "sqlite:a" }\nupstream: { urls: ["HTTP://Backend:80/"] }');
    expect(config.upstream?.urls).toEqual(['http://backend']);
  });

  test('several upstreams are kept in their order, with how they are balanced and checked', async () => {
    const { upstream } = await load(
      'store: { url: "sqlite:a" }\nupstream: { urls: ["https://b", "http://a:1"], balance: round_robin, health_check: { path: /healthz } }',
    );
    expect(upstream).toMatchObject({
      urls: ['https://b', 'http://a:1'],
      balance: 'round_robin',
      healthCheck: { path: '/healthz', intervalMs: 5000 },
    });
  });

  test('one port on different addresses, and port 0 twice, are fine', async () => {
    const yaml = `${MINIMAL}listen: { host: 127.0.0.1, port: 8080 }\nops: { host: 127.0.0.2, port: 8080 }`;
    expect((await load(yaml)).ops.port).toBe(8080);
    expect((await load(`${MINIMAL}listen: { port: 0 }\nops: { port: 0 }`)).ops.port).toBe(0);
  });

  test('is frozen all the way down, Maps included', async () => {
    const config = await load(`${MINIMAL}overrides: { a: { requests_per_hour: 1 } }`);
    const walk = (value: unknown): void => {
      if (typeof value !== 'object' || value === null) return;
      expect(Object.isFrozen(value)).toBe(true);
      for (const child of value instanceof Map ? value.values() : Object.values(value)) walk(child);
    };
    walk(config);
    const plans = config.plans as Map<string, unknown>;
    expect(() => plans.set('x', {})).toThrow(TypeError);
    expect(() => plans.delete('starter')).toThrow(TypeError);
    expect(() => plans.clear()).toThrow(TypeError);
    expect(config.plans.size).toBe(4);
  });

  test('a former name of a setting counts as its present one, with a warning', async () => {
    const { limits, warnings } = await load(`${MINIMAL}limits:\n  answer_stall_timeout_ms: 5000`);
    expect(limits.responseStallTimeoutMs).toBe(5000);
    expect(warnings).toEqual([
      'gateway.yaml:4: warning: limits.response_stall_timeout_ms: is called answer_stall_timeout_ms here, its former name: rename it',
    ]);
    const both = `${MINIMAL}limits:\n  answer_stall_timeout_ms: 5000\n  response_stall_timeout_ms: 5000`;
    await expect(load(both)).rejects.toThrow('is given twice');
  });

  test('the hash follows the values, not how they are written, and knows no secrets', async () => {
    const base = await load(`${MINIMAL}admin: { token: one }`);
    const hashOf = async (yaml: string) => (await load(yaml)).hash;
    expect(base.hash).toMatch(/^[0-9a-f]{12}$/);
    expect(await hashOf(`# comment\nadmin:\n  token: one\n${MINIMAL}ops: { port: 8081 }`)).toBe(base.hash);
    expect(await hashOf(`${MINIMAL}admin: { token: two }`)).toBe(base.hash);
    expect(await hashOf(`${MINIMAL.replace('//127', '//user:pw@127')}admin: { token: one }`)).toBe(base.hash);
    expect(await hashOf(MINIMAL)).not.toBe(base.hash);
    expect(await hashOf(`${MINIMAL}admin: {}`)).not.toBe(base.hash);
    expect(await hashOf(`${MINIMAL}admin: { token: one }\nplans: { a: { requests_per_hour: 1 } }`)).not.toBe(base.hash);
    const two = (order: string) => `${MINIMAL}plans: { ${order} }`;
    const [a, b] = ['a: { requests_per_hour: 1 }', 'b: { requests_per_hour: 2 }'];
    expect(await hashOf(two(`${a}, ${b}`))).toBe(await hashOf(two(`${b}, ${a}`)));
  });

  test('no text makes loading fail with anything but problems', async () => {
    const unit = fc.constantFrom(...'{}[]:-,&*!|>%@`"\'# \n\t$?~', 'listen', 'store', 'url', 'a', '1', '<<', '${A}');
    await fc.assert(
      fc.asyncProperty(fc.string({ unit, maxLength: 60 }), async (yaml) => {
        expect((await problemsOf(yaml, { A: 'x' })).length).toBeGreaterThan(0);
      }),
      { numRuns: 500 },
    );
  });
});
