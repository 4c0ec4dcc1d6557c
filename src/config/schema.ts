/**
 * Every key of the config file, as written there, with its rule, default and description. Rules that concern several
 * keys are in cross-checks.ts.
 */
import type { z } from 'zod';
import { LOG_FORMATS } from '../formats/path-and-origin.ts';
import * as types from './setting-types.ts';

const listen = types.mapping({
  host: types.listenHost.default('0.0.0.0').describe('Address that the public listener binds to.'),
  port: types.port.default(8080).describe('Port of the public listener; 0 takes any free one.'),
  trusted_proxies: types
    .listOf(types.addressOrBlock.describe('An address or a CIDR block.'))
    .default([])
    .describe('Proxies whose X-Forwarded-For and X-Forwarded-Proto are used.'),
  trust_forwarded_host: types.flag
    .default(false)
    .describe('Use X-Forwarded-Host from trusted_proxies too. Only if the proxy always sets it: see deploy.md.'),
  keep_alive_timeout_ms: types.durationMs
    .default(75_000)
    .describe('How long an idle client connection stays open; set it above the idle timeout of a load balancer.'),
  tls: types
    .mapping({
      cert_file: types.fileName.describe('The certificate in PEM, followed by its intermediate certificates.'),
      key_file: types.secretFile('key').describe('Its private key in PEM, without a passphrase.'),
    })
    .optional()
    .describe('If omitted, the listener uses HTTP without TLS. Changed files are used without a restart.'),
});

const ops = types.mapping({
  host: types.listenHost.default('0.0.0.0').describe('Address that the ops listener binds to.'),
  port: types.port.default(8081).describe('Port of the ops listener; 0 takes any free one.'),
});

/** Of the name in the console's header. */
const CONSOLE_COLORS = ['gray', 'red', 'orange', 'green', 'blue', 'purple'] as const;

const admin = types.mapping({
  host: types.listenHost.default('127.0.0.1').describe('Address that the admin listener binds to.'),
  port: types.port.default(8082).describe('Port of the admin listener; 0 takes any free one.'),
  allowed_hosts: types
    .listOf(types.listenHost.describe('A host name or an IP address, without a port.'))
    .default([])
    .describe('Further values of Host that the admin listener accepts, besides its own address; others get 421.'),
  token: types
    .secret('secret')
    .optional()
    .describe('Bearer token of the admin API, such as 32 random bytes; if empty, no token is accepted.'),
  token_file: types.secretFile('token').optional().describe('File to read the token from instead.'),
  jwt: types
    .mapping({
      jwks_url: types.trustworthyUrl.describe('URL of the key set of the issuer: https, or http on loopback.'),
      issuer: types.stringOrUri.describe('What `iss` must be.'),
      audience: types.stringOrUri.describe('What `aud` must be or contain.'),
    })
    .optional()
    .describe('Accepts JWTs of this issuer, too, with the scope tollgate:read or tollgate:write.'),
});

const portal = types.mapping({
  host: types.listenHost.default('0.0.0.0').describe('Address that the portal listener binds to.'),
  port: types.port.default(8083).describe('Port of the portal listener; 0 takes any free one.'),
  public_url: types.origin.describe('Origin of the portal in links; requests with another host get 421.'),
  title: types.title.default('API').describe('Name of your API, shown on each page.'),
  logo_file: types.fileName
    .optional()
    .describe('Your logo beside the title: an SVG or PNG of at most 64 KiB. A changed file is used without a restart.'),
  home_url: types.returnUrl
    .optional()
    .describe('Your own site. The bare address of the portal leads there, and pages without a session.'),
  docs_url: types.webPage.optional().describe('The documentation of your API.'),
  support_url: types.webPage.optional().describe('Where customers get help.'),
  api_url: types.apiUrl
    .optional()
    .describe('Base URL of your API for customers, such as https://api.example.com: for a curl line beside a new key.'),
  accent_color: types.color.optional().describe('Color of links and buttons, such as "#0b5fff".'),
  max_keys: types.count
    .default(20)
    .describe('A customer with this many keys that are not replaced, revoked or expired cannot create one here.'),
});

const check = types.mapping({
  host: types.listenHost.default('127.0.0.1').describe('Address that the check listener binds to.'),
  port: types.port.default(8084).describe('Port of the check listener; 0 takes any free one.'),
  token: types
    .secret('secret')
    .optional()
    .describe('What each check must have in X-Tollgate-Check-Token; required unless host is a loopback address.'),
  token_file: types.secretFile('token').optional().describe('File to read the token from instead.'),
  trusted_proxies: types
    .listOf(types.addressOrBlock.describe('An address or a CIDR block.'))
    .optional()
    .describe('Proxies whose X-Forwarded-For names the client; if omitted, listen.trusted_proxies.'),
});

/** For the gateway's connections to the store and to the backend. */
const clientTls = types
  .mapping({
    ca_file: types.fileName
      .optional()
      .describe("Authorities in PEM that sign the peer's certificate; if omitted, those of Node.js."),
    cert_file: types.fileName.optional().describe('Client certificate of the gateway in PEM.'),
    key_file: types.secretFile('key').optional().describe('Its private key in PEM, without a passphrase.'),
  })
  .optional();

const store = types.mapping({
  url: types
    .secret('URL')
    .optional()
    .describe(
      'Required, here or by url_file: redis://host:port/db, redis+sentinel://host:port,…/master-name/db, redis+cluster://host:port,…, each with user:password@ before the first host if required, rediss… for TLS; unix:/path of its socket; or sqlite:FILE for the embedded store.',
    ),
  url_file: types.fileName.optional().describe('File to read the URL from instead.'),
  tls: clientTls.describe('TLS settings for rediss://, rediss+sentinel:// and rediss+cluster://.'),
  sentinel: types
    .mapping({
      username: types.stringOrUri.optional().describe('User for the sentinels; if omitted, the default user.'),
      password: types.secret('secret').optional().describe('Password for the sentinels, if they have one.'),
      password_file: types.secretFile('password').optional().describe('File to read the password from instead.'),
    })
    .optional()
    .describe('Credentials for the sentinels; those in the URL are for Redis itself.'),
  key_prefix: types.keyPrefix.default('tollgate').describe('First part of the name of every key in the store.'),
  timeout_ms: types.durationMs.default(100).describe('Maximum time that a request waits for the store.'),
  on_error: types
    .oneOf(['local', 'deny', 'allow'])
    .default('local')
    .describe(
      'Quotas while the store is unavailable or refuses reservations: local limits each instance to its share, deny responds 503, allow admits every request.',
    ),
});

const upstream = types.mapping({
  urls: types
    .listOf(types.upstreamUrl.describe('Scheme, host, port and base path of all requests, or unix:/path/of/socket.'))
    .min(1, 'must have at least one entry')
    .describe('The servers of the backend; requests are balanced among them.'),
  balance: types
    .oneOf(['least_loaded', 'round_robin'])
    .default('least_loaded')
    .describe('Which server gets a request: the one with the fewest requests in progress, or each in turn.'),
  connect_timeout_ms: types.durationMs.default(1000).describe('Time to open a connection to the backend.'),
  response_timeout_ms: types.durationMs
    .default(30_000)
    .describe("Time from the last byte of the request to the first byte of the backend's response."),
  idle_timeout_ms: types.durationMs
    .default(60_000)
    .describe('Time between two bytes of the response. The time that a slow client takes to read does not count.'),
  total_timeout_ms: types.durationMs
    .optional()
    .describe(
      'Time from the last byte of the request to that of the response, not below response_timeout_ms; if omitted, a response may take as long as it progresses.',
    ),
  response_header_bytes: types.bytes
    .default(65_536)
    .describe("Maximum total size of the status line and headers of a backend's response."),
  reuse_after_body: types.flag
    .default(true)
    .describe(
      'Whether a connection is used again after a request with a body; false if the backend may leave a body unread.',
    ),
  max_connections: types.count.default(256).describe('Maximum number of connections to each backend server.'),
  max_connections_per_customer: types.count
    .optional()
    .describe('Maximum for a customer while at least half of max_connections are in use; if omitted, a quarter.'),
  health_check: types
    .mapping({
      path: types.requestPath.describe('Full path, not below a base path; any 2xx within two seconds is healthy.'),
      interval_ms: types.durationMs.default(5000).describe('Time from the end of one check to the next.'),
    })
    .optional()
    .describe('Checks each backend server; three failures in a row take it out of service.'),
  tls: clientTls.describe('TLS settings for https:// in urls.'),
  credentials: types
    .oneOf(['strip', 'forward', 'replace'])
    .default('strip')
    .describe("What happens to the header with the client's key: removed, forwarded, or replaced by Authorization."),
  authorization: types
    .secret('secret')
    .optional()
    .describe('The whole Authorization header for the backend; required with credentials: replace.'),
  authorization_file: types.secretFile('authorization').optional().describe('File to read authorization from instead.'),
  preserve_host: types.flag
    .default(false)
    .describe("Whether the backend gets the client's Host header instead of its own authority."),
  audience: types.stringOrUri
    .optional()
    .describe(
      'Claim `aud` of the assertions for this backend; if omitted, identity.assertion.audience, else the origin of the first of urls. With assertions, one of the two is required if that is a unix socket.',
    ),
});

const route = types.mapping({
  path: types.routePath.describe(
    'Absolute path, or / alone; a segment is literal or one {name}, and the last may be {name...}: one or more segments. The most specific route wins.',
  ),
  methods: types
    .listOf(types.method.describe('A method; GET includes HEAD.'))
    .min(1, 'must have at least one method')
    .describe('Methods that are forwarded.'),
  max_body_bytes: types.bodyBytes
    .optional()
    .describe('Maximum length of a request body, longer ones get 413; if omitted, limits.body_bytes.'),
  scope: types.scope
    .optional()
    .describe('A key with scopes needs this one, or gets 403 insufficient_scope; if omitted, every key may use it.'),
  description: types.description
    .optional()
    .describe('What requests of the route do, in the words of customers: the portal shows it with the scope.'),
  units: types.units.default(1).describe('What a request takes from every quota of its customer; 0: nothing.'),
  key: types
    .oneOf(['required', 'none'])
    .default('required')
    .describe('Whether requests need an API key; with none, anyone may send them.'),
  upstream: types.backendName
    .default('default')
    .describe('The backend: a name in upstreams, or default for the one of upstream.'),
  response_timeout_ms: types.durationMs.optional().describe('Overrides response_timeout_ms of the backend.'),
  idle_timeout_ms: types.durationMs.optional().describe('Overrides idle_timeout_ms of the backend.'),
  total_timeout_ms: types.durationMs.optional().describe('Overrides total_timeout_ms of the backend.'),
  deprecated_at: types.time
    .optional()
    .describe('When the route is deprecated, which may lie ahead: sent as Deprecation (RFC 9745).'),
  sunset_at: types.time
    .optional()
    .describe('From when on its requests get 410, not before deprecated_at: sent as Sunset (RFC 8594).'),
  successor: types.successor
    .optional()
    .describe('URL of what replaces the route: sent as Link with rel="successor-version".'),
});

const plan = types.mapping({
  requests_per_hour: types.planLimit.describe("Each customer's hourly quota; custom: every customer has its own."),
  period: types
    .mapping({
      per: types.oneOf(['day', 'month']).describe('How long a period is.'),
      requests: types.planLimit.describe("Each customer's quota of a period; custom: every customer has its own."),
      beyond: types
        .oneOf(['refuse', 'allow'])
        .default('refuse')
        .describe('Requests beyond it: refused, or served and counted as overage.'),
    })
    .optional()
    .describe('A second quota, of a day or a month that begins with the `period_anchor` of the customer.'),
  burst_per_second: types.count
    .optional()
    .describe('Maximum number of requests of a customer within any second, on each instance; if omitted, no limit.'),
  max_concurrent: types.count
    .optional()
    .describe('Maximum number of requests of a customer in progress, on each instance; if omitted, no limit.'),
  shadow: types
    .mapping({
      requests_per_hour: types.count.describe('The hourly quota to test.'),
    })
    .optional()
    .describe('A quota that is reported but not enforced.'),
  formerly: types
    .listOf(types.planName.describe('A former name.'))
    .optional()
    .describe('Former names of the plan: customers whose records have one of them are on this plan.'),
});

const override = types
  .mapping({
    requests_per_hour: types.count.optional().describe("The customer's hourly quota; it overrides plan and record."),
    period_requests: types.count
      .optional()
      .describe("The customer's quota of a period, if its plan has one; it overrides plan and record."),
  })
  .refine(
    ({ requestsPerHour, periodRequests }) => requestsPerHour !== undefined || periodRequests !== undefined,
    'must have requests_per_hour or period_requests',
  );

const noticeEndpoint = types.mapping({
  url: types.webhookUrl.describe('Where notices are sent by POST: https, unless allow_private is true.'),
  secret: types
    .secret('secret')
    .optional()
    .describe(
      'Signs the notices: whsec_ and 24 to 64 random bytes in base64. Required, here or by secret_file; two lines while it is rotated.',
    ),
  secret_file: types.secretFile('secrets').optional().describe('File to read the secret from instead.'),
  allow_private: types.flag
    .default(false)
    .describe('Whether the host may be in a private network, or this machine, and the URL may be http.'),
});

const limits = types.mapping({
  header_bytes: types.bytes.default(16_384).describe('Maximum total size of the headers of a request.'),
  header_count: types.count.default(100).describe('Maximum number of headers in a request.'),
  body_bytes: types.bodyBytes
    .default(1_048_576)
    .describe('Maximum length of a request body on routes without max_body_bytes; 0 allows none.'),
  target_bytes: types.bytes.default(8192).describe('Maximum length of a request target (path and query).'),
  connections: types.count
    .default(10_000)
    .describe('Maximum number of client connections, on each instance; a further one replaces an idle one.'),
  in_flight: types.count
    .default(2048)
    .describe('Maximum number of requests in progress, on each instance; further ones get 503.'),
  pipelined: types.count
    .default(16)
    .describe('Maximum number of pipelined requests of one connection in progress; further ones wait.'),
  headers_timeout_ms: types.durationMs
    .default(10_000)
    .describe('Time for a client to send the headers of a request; not above request_timeout_ms.'),
  request_timeout_ms: types.durationMs
    .default(30_000)
    .describe('Time for a client to send the headers of a request and the first 16 KiB of its body.'),
  body_stall_timeout_ms: types.durationMs
    .default(30_000)
    .describe('Time in which a client must send at least one byte of a request body; else it gets 408.'),
  response_stall_timeout_ms: types.durationMs
    .default(30_000)
    .describe('Time in which a client must read at least one byte of a waiting response.'),
});

/** Former names of settings, which are accepted with a warning. */
export const RENAMED_SETTINGS = [
  { section: 'limits', formerly: 'answer_stall_timeout_ms', name: 'response_stall_timeout_ms' },
] as const;

const DEFAULT_ROUTES: z.input<typeof route>[] = [
  { path: '/api/v1/conversations', methods: ['GET', 'HEAD'] },
  { path: '/api/v1/conversations/{id}', methods: ['GET', 'HEAD'] },
];

const DEFAULT_PLANS: Record<string, z.input<typeof plan>> = {
  starter: { requests_per_hour: 1000 },
  professional: { requests_per_hour: 5000 },
  business: { requests_per_hour: 20_000 },
  enterprise: { requests_per_hour: 'custom' },
};

const KEY_HEADERS_RULE = 'must have one to four names';

export const configSchema = types.mapping({
  listen: listen.prefault({}).describe('The public listener: the routes and nothing else.'),
  ops: ops.prefault({}).describe('The ops listener: health, metrics, and the keys that verify assertions.'),
  admin: admin.optional().describe('The admin listener; if omitted, there is no admin API.'),
  portal: portal
    .optional()
    .describe('Usage and keys for your customers, see portal.md; if omitted, there is no portal. Needs admin.'),
  check: check
    .optional()
    .describe('Decides requests that another proxy forwards, see check.md; if omitted, there is no such listener.'),
  console: types
    .mapping({
      name: types.title.optional().describe('Name of this installation in the header of the console.'),
      color: types.oneOf(CONSOLE_COLORS).default('gray').describe('Background of the name.'),
    })
    .optional()
    .describe('How the console tells this installation from others.'),
  workers: types.workers
    .default(1)
    .describe(
      'Processes that serve clients; auto: one for each core that the gateway may use. Each is a separate instance. The embedded store requires 1.',
    ),
  store: store.prefault({}).describe('Where keys, customers and counters are stored.'),
  upstream: upstream
    .optional()
    .describe(
      'The default backend, and how to connect to it; may be omitted if every route names another, or with check.',
    ),
  upstreams: types
    .mapOf(types.upstreamsName, upstream.describe('A backend, with the settings of upstream.'))
    .prefault({})
    .describe('Further backends by name, each with the settings of upstream; routes name theirs.'),
  routes: types
    .listOf(route.describe('A route.'))
    .min(1, 'must have at least one route')
    .prefault(DEFAULT_ROUTES)
    .describe('The paths that are forwarded; all others are refused.'),
  aliases: types
    .mapOf(types.prefix, types.prefix.describe('The prefix of routes that it replaces.'))
    .prefault({ '/v1': '/api/v1' })
    .describe('Additional prefixes for routes. The default applies only if the routes have the prefix /api/v1.'),
  usage_path: types.usagePath
    .default('/api/v1/usage')
    .describe('Path where a client reads its own quota, free of charge; null turns it off. Aliases apply.'),
  usage: types
    .mapping({
      hours_days: types.count.default(35).describe('Days for which hours are kept.'),
      days: types.count.default(400).describe('Days for which daily sums are kept.'),
    })
    .nullable()
    .meta({ typeInWords: 'mapping | null' })
    .prefault({})
    .describe('The usage history; null turns it off.'),
  requests: types
    .mapping({
      hours: types.recordHours.default(24).describe('Hours for which a request is kept.'),
      entries: types.recordEntries.default(10_000).describe('The most requests that are kept, about 500 bytes each.'),
    })
    .nullable()
    .meta({ typeInWords: 'mapping | null' })
    .prefault({})
    .describe('The records of refused and failed requests, for support; null turns them off.'),
  notices: types
    .mapping({
      endpoints: types
        .listOf(noticeEndpoint.describe('An endpoint.'))
        .prefault([])
        .describe('Endpoints of the operator; each gets the notices of all customers.'),
      levels: types
        .listOf(types.percent.describe('A level in percent of the limit of the hour, day or month.'))
        .default([80, 95])
        .describe('Levels of usage at which a notice is sent; one is always sent when the limit is used up.'),
      key_expiry_days: types
        .listOf(types.days.describe('A number of days.'))
        .default([7, 1])
        .describe('How long before the expiry of a key a notice is sent.'),
    })
    .optional()
    .describe('Signed notices to webhooks, see notices.md; if omitted, there are none.'),
  tracing: types
    .mapping({
      endpoint: types.collectorUrl.describe('Receiver of OTLP over HTTP, such as http://collector:4318/v1/traces.'),
      headers_file: types
        .secretFile('exportHeaders')
        .optional()
        .describe('File with further headers for the collector, such as credentials: `Name: value`, one on each line.'),
      sample_ratio: types.ratio.default(0.01).describe('Share of the requests that are traced, from 0 to 1.'),
      trust_parent: types.flag
        .default(false)
        .describe('Whether the sampled flag in traceparent decides instead, if a proxy of trusted_proxies sends it.'),
      customer: types.flag.default(false).describe('Whether spans name the customer.'),
    })
    .optional()
    .describe('Traces for OpenTelemetry, see tracing.md; if omitted, there are none.'),
  documentation_url: types.documentationUrl
    .optional()
    .describe('URL of a page about refusals, in each problem document of the public listener; {code} is its code.'),
  plans: types
    .mapOf(types.planName, plan.describe('A plan.'))
    .prefault(DEFAULT_PLANS)
    .describe('The plans and their quotas; if set, they replace all default plans.'),
  overrides: types
    .mapOf(types.customerId, override.describe('A customer.'))
    .prefault({})
    .describe('Quotas of single customers; they override plan and customer record.'),
  auth: types
    .mapping({
      realm: types.realm.default('api').describe('The realm in WWW-Authenticate.'),
      key_headers: types
        .listOf(types.keyHeader.describe('A name, compared without case. Authorization means the Bearer scheme.'))
        .min(1, KEY_HEADERS_RULE)
        .max(4, KEY_HEADERS_RULE)
        .default(['Authorization'])
        .describe('The headers in which clients may send their key; a request must have exactly one of them, once.'),
      cache_seconds: types.seconds
        .default(30)
        .describe(
          'How long a key or customer is used from memory before it is read again; up to ten minutes longer while Redis pushes changes.',
        ),
      cache_entries: types.count.default(100_000).describe('Maximum number of keys, and of customers, in memory.'),
      stale_if_error_seconds: types.seconds
        .default(3600)
        .describe('How long known keys are served while the store is unavailable.'),
      failures_per_minute: types.count
        .default(300)
        .describe(
          'Failed keys from one IPv4 address or IPv6 /64 within a minute, on each gateway; further ones get 429. A valid key is never refused for this reason.',
        ),
      browser_keys: types
        .oneOf(['allow', 'warn', 'reject'])
        .default('warn')
        .describe(
          'Valid keys that a browser sends (Origin or Sec-Fetch-Site): allow accepts them, warn also counts and logs them, reject refuses them.',
        ),
    })
    .prefault({})
    .describe('How clients authenticate.'),
  identity: types
    .mapping({
      headers: types.flag.default(true).describe('Whether the backend gets X-Tollgate-Customer, -Plan and -Key-Id.'),
      assertion: types
        .mapping({
          issuer: types.stringOrUri.default('tollgate').describe('Its `iss`.'),
          audience: types.stringOrUri
            .optional()
            .describe(
              'Claim `aud` for each backend without an audience of its own; if omitted, the origin of its first URL. Required with check.',
            ),
          ttl_seconds: types.assertionSeconds.default(60).describe('Time from `iat` to `exp`.'),
          signing_key_file: types
            .secretFile('signingKeys')
            .describe('Ed25519 keys in PEM: the first is private (PKCS#8) and signs; all of them are published.'),
        })
        .optional()
        .describe('Sends the customer to the backend as a signed JWT, in X-Tollgate-Assertion.'),
    })
    .prefault({})
    .describe('How the backend learns who the customer is.'),
  limits: limits.prefault({}).describe('Limits on requests and connections.'),
  shutdown: types
    .mapping({
      not_ready_ms: types.durationOrZeroMs
        .default(5000)
        .describe('How long requests are still accepted while /readyz is already 503.'),
      drain_ms: types.durationOrZeroMs
        .default(20_000)
        .describe('Maximum time after that for requests in progress to complete.'),
    })
    .prefault({})
    .describe('Deadlines of a stop by SIGTERM.'),
  logging: types
    .mapping({
      level: types
        .oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal'])
        .default('info')
        .describe('The least severe level that is logged.'),
      access: types
        .oneOf(['all', 'errors', 'off'])
        .default('all')
        .describe('Which requests are logged: all, refusals and 5xx (errors), or none; repeated refusals in summary.'),
      format: types
        .oneOf(LOG_FORMATS)
        .default('auto')
        .describe('JSON lines, or pretty lines for people; auto: pretty if standard output is a terminal.'),
    })
    .prefault({})
    .describe('The log, on standard output.'),
});

/** The values of the file with all defaults, named in camel case. */
export type FileValues = DeepReadonly<z.output<typeof configSchema>>;

type DeepReadonly<T> = T extends string | number | boolean | null | undefined
  ? T
  : T extends Map<infer K, infer V>
    ? ReadonlyMap<K, DeepReadonly<V>>
    : T extends (infer Item)[]
      ? readonly DeepReadonly<Item>[]
      : { readonly [Name in keyof T]: DeepReadonly<T[Name]> };
