/**
 * Every key of the config file, as written there, with its rule, default and description. Rules that concern several
 * keys are in cross-checks.ts.
 */
import type { z } from 'zod';
import {
  ACCESS_LOG_MODES,
  BALANCE_MODES,
  BROWSER_KEY_MODES,
  CREDENTIAL_MODES,
  LOG_FORMATS,
  LOG_LEVELS,
  ROUTE_METHODS,
  STORE_ERROR_MODES,
} from './config.ts';
import * as leaf from './leaf.ts';

const listen = leaf.mapping({
  host: leaf.listenHost().default('0.0.0.0').describe('Address that the public listener binds to.'),
  port: leaf.port().default(8080).describe('Port of the public listener; 0 takes any free one.'),
  trusted_proxies: leaf
    .listOf(leaf.addressOrBlock().describe('An address or a CIDR block.'))
    .default([])
    .describe('Proxies whose X-Forwarded-For and X-Forwarded-Proto are used.'),
  trust_forwarded_host: leaf
    .flag()
    .default(false)
    .describe('Use X-Forwarded-Host from trusted_proxies too. Only if the proxy always sets it: see deploy.md.'),
  keep_alive_timeout_ms: leaf
    .durationMs()
    .default(75_000)
    .describe('How long an idle connection of a caller stays open; above the idle time of a load balancer in front.'),
  tls: leaf
    .mapping({
      cert_file: leaf.fileName().describe('The certificate in PEM, followed by those that vouch for it.'),
      key_file: leaf.fileName().describe('Its private key in PEM, without a passphrase.'),
    })
    .optional()
    .describe('Left out, the listener speaks HTTP without TLS. New contents of the files are used without a restart.'),
});

const ops = leaf.mapping({
  host: leaf.listenHost().default('0.0.0.0').describe('Address that the ops listener binds to.'),
  port: leaf.port().default(8081).describe('Port of the ops listener; 0 takes any free one.'),
});

const admin = leaf.mapping({
  host: leaf.listenHost().default('127.0.0.1').describe('Address that the admin listener binds to.'),
  port: leaf.port().default(8082).describe('Port of the admin listener; 0 takes any free one.'),
  allowed_hosts: leaf
    .listOf(leaf.listenHost().describe('A host name or an IP address, without a port.'))
    .default([])
    .describe('Values of Host that the admin listener answers besides its own address; others get 421.'),
  token: leaf
    .secret('secret')
    .optional()
    .describe('Bearer token of the admin API, best 32 random bytes; empty turns tokens off.'),
  token_file: leaf.fileName().optional().describe('File to read the token from instead.'),
  jwt: leaf
    .mapping({
      jwks_url: leaf.trustworthyUrl().describe('Where the issuer publishes its keys: https, or http on loopback.'),
      issuer: leaf.stringOrUri().describe('What `iss` must be.'),
      audience: leaf.stringOrUri().describe('What `aud` must be or contain.'),
    })
    .optional()
    .describe('Also lets in who presents a JWT of this issuer with the scope tollgate:read or tollgate:write.'),
});

const store = leaf.mapping({
  url: leaf
    .secret('URL')
    .optional()
    .describe(
      'Required, here or by url_file: redis://host:port/db, redis+sentinel://host:port,…/master-name/db, redis+cluster://host:port,…, each with user:password@ before the first host if need be, rediss… for TLS; or sqlite:FILE for the embedded store.',
    ),
  url_file: leaf.fileName().optional().describe('File to read the URL from instead.'),
  tls: leaf
    .mapping({
      ca_file: leaf
        .fileName()
        .optional()
        .describe("Certificates (PEM) of the authorities that sign the store's; left out, those that Node.js knows."),
      cert_file: leaf.fileName().optional().describe('Certificate (PEM) that the gateway shows to the store.'),
      key_file: leaf.fileName().optional().describe('Its private key (PEM).'),
    })
    .optional()
    .describe('For rediss://, rediss+sentinel:// and rediss+cluster://, where the defaults do not fit.'),
  sentinel: leaf
    .mapping({
      username: leaf.stringOrUri().optional().describe('User of the sentinels; left out: the default user.'),
      password: leaf.secret('secret').optional().describe('Password of the sentinels, where they have one.'),
      password_file: leaf.fileName().optional().describe('File to read the password from instead.'),
    })
    .optional()
    .describe('How the sentinels let the gateway in; what stands in the URL is for Redis itself.'),
  key_prefix: leaf.keyPrefix().default('tollgate').describe('First part of the name of every key in the store.'),
  timeout_ms: leaf.durationMs().default(100).describe('How long a request waits for the store at most.'),
  on_error: leaf
    .oneOf(STORE_ERROR_MODES)
    .default('local')
    .describe(
      'Quotas while the store is away or refuses reservations: local holds each instance to its share, deny answers 503, allow lets everything pass.',
    ),
});

const upstream = leaf.mapping({
  urls: leaf
    .listOf(
      leaf
        .upstreamUrl()
        .describe(
          'Scheme, host, port, and the base path in front of every request path; sample starts the bundled backend.',
        ),
    )
    .min(1, 'must have at least one entry')
    .describe('The backend to forward to; several servers of it share the requests.'),
  balance: leaf
    .oneOf(BALANCE_MODES)
    .default('least_loaded')
    .describe('Which of several gets a request: the one with the fewest under way, or each in turn.'),
  connect_timeout_ms: leaf.durationMs().default(1000).describe('Time to open a connection to the backend.'),
  response_timeout_ms: leaf.durationMs().default(30_000).describe("Time to the first byte of the backend's answer."),
  total_timeout_ms: leaf
    .durationMs()
    .default(120_000)
    .describe("Time to the last byte of the backend's answer; not below response_timeout_ms."),
  max_connections: leaf.count().default(256).describe('Open connections to each server of the backend at most.'),
  max_connections_per_customer: leaf
    .count()
    .optional()
    .describe(
      'Share of max_connections that a customer can exceed only while fewer than half of them are in use; left out, a quarter.',
    ),
  health_check: leaf
    .mapping({
      path: leaf
        .requestPath()
        .describe('Full path of the request, not below a base path; any 2xx within two seconds is healthy.'),
      interval_ms: leaf.durationMs().default(5000).describe('From one check to the next.'),
    })
    .optional()
    .describe('Asks each server of the backend whether it is healthy; three failures in a row take it out of service.'),
  tls: leaf
    .mapping({
      ca_file: leaf
        .fileName()
        .optional()
        .describe("Certificates in PEM that the backend's must be signed by, in place of the well-known ones."),
      cert_file: leaf.fileName().optional().describe('A certificate in PEM that the gateway shows to the backend.'),
      key_file: leaf.fileName().optional().describe('Its private key in PEM, without a passphrase.'),
    })
    .optional()
    .describe('For a backend with https:// in upstream.urls.'),
  credentials: leaf
    .oneOf(CREDENTIAL_MODES)
    .default('strip')
    .describe("What happens to the caller's Authorization header: removed, passed on, or replaced."),
  authorization: leaf
    .secret('secret')
    .optional()
    .describe('The whole Authorization header for the backend; required with credentials: replace.'),
  authorization_file: leaf.fileName().optional().describe('File to read authorization from instead.'),
  preserve_host: leaf
    .flag()
    .default(false)
    .describe("Whether the backend gets the caller's Host header instead of its own authority."),
});

const route = leaf.mapping({
  path: leaf.routePath().describe('Absolute path; a segment is literal or one {name}.'),
  methods: leaf
    .listOf(leaf.oneOf(ROUTE_METHODS).describe('A method; HEAD comes with GET.'))
    .min(1, 'must have at least one method')
    .describe('Methods that are forwarded.'),
});

const plan = leaf.mapping({
  requests_per_hour: leaf.planLimit().describe("Each customer's hourly quota; custom: every customer has its own."),
  burst_per_second: leaf
    .count()
    .optional()
    .describe('Requests of a customer within any second at most, on each instance; left out, there is no such limit.'),
  shadow: leaf
    .mapping({
      requests_per_hour: leaf.requestsPerHour().describe('The hourly quota to try out.'),
    })
    .optional()
    .describe('A quota that is counted and reported, and never refuses.'),
  formerly: leaf
    .listOf(leaf.planName().describe('A name that is not used any more.'))
    .optional()
    .describe('Names that the plan had before: customers whose records have one of them are on this plan.'),
});

const override = leaf.mapping({
  requests_per_hour: leaf.requestsPerHour().describe("The customer's hourly quota, whatever its plan and record say."),
});

const seedCustomer = leaf.mapping({
  id: leaf.customerId().describe("The customer's id."),
  name: leaf.displayName().optional().describe('A name for people.'),
  plan: leaf.planName().describe('A plan of this configuration.'),
  requests_per_hour: leaf
    .requestsPerHour()
    .optional()
    .describe("The customer's own hourly quota; required on a custom plan."),
  key: leaf.apiKey().describe('Its API key. Whoever can read this file has it.'),
});

const limits = leaf.mapping({
  header_bytes: leaf.bytes().default(16_384).describe('Size of the headers of a request together at most.'),
  header_count: leaf.count().default(100).describe('Number of headers in a request at most.'),
  target_bytes: leaf.bytes().default(8192).describe('Length of a request target (path and query) at most.'),
  connections: leaf
    .count()
    .default(10_000)
    .describe('Open connections of callers at most, on each instance; beyond, idle ones give way to new ones.'),
  in_flight: leaf
    .count()
    .default(2048)
    .describe('Requests under way at once at most, on each instance; further ones get 503.'),
  pipelined: leaf
    .count()
    .default(16)
    .describe('Requests of one connection that are worked on at once; further ones wait their turn.'),
  headers_timeout_ms: leaf
    .durationMs()
    .default(10_000)
    .describe('Time for a caller to send its headers; not above request_timeout_ms.'),
  request_timeout_ms: leaf.durationMs().default(30_000).describe('Time for a caller to send its whole request.'),
  answer_stall_timeout_ms: leaf
    .durationMs()
    .default(30_000)
    .describe('Time in which a caller must take at least something of an answer that waits for it.'),
});

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

export const configSchema = leaf.mapping({
  listen: listen.prefault({}).describe('The public listener: the routes and nothing else.'),
  ops: ops.prefault({}).describe('The ops listener: health, metrics, and the keys that verify assertions.'),
  admin: admin.optional().describe('The admin listener; left out, there is no admin API.'),
  workers: leaf
    .workers()
    .default(1)
    .describe(
      'Processes that serve callers; auto: one for each core that the gateway may use. Each is an instance of its own. The embedded store allows 1 only.',
    ),
  store: store.prefault({}).describe('Where keys, customers and counters are kept.'),
  upstream: upstream.describe('The backend and how to speak to it.'),
  routes: leaf
    .listOf(route.describe('A route.'))
    .min(1, 'must have at least one route')
    .default(DEFAULT_ROUTES)
    .describe('What is forwarded; everything else is refused.'),
  aliases: leaf
    .mapOf(leaf.prefix(), leaf.prefix().describe('The prefix of routes that it stands for.'))
    .default({ '/v1': '/api/v1' })
    .describe(
      'Further prefixes under which routes can be reached. The default holds where the routes have its prefix.',
    ),
  usage_path: leaf
    .usagePath()
    .default('/api/v1/usage')
    .describe('Where a caller reads its own quota, free of charge; null turns it off. Aliases apply.'),
  documentation_url: leaf
    .documentationUrl()
    .optional()
    .describe(
      'Where callers read what a refusal means, in every problem document of the public listener; {code} stands for its code.',
    ),
  plans: leaf
    .mapOf(leaf.planName(), plan.describe('A plan.'))
    .default(DEFAULT_PLANS)
    .describe('The plans and their quotas; given, they replace the default ones.'),
  overrides: leaf
    .mapOf(leaf.customerId(), override.describe('A customer.'))
    .default({})
    .describe('Quotas of single customers, above plan and customer record.'),
  auth: leaf
    .mapping({
      realm: leaf.realm().default('conversations').describe('The realm that WWW-Authenticate names.'),
      cache_seconds: leaf
        .seconds()
        .default(30)
        .describe('How long a key or customer is served from memory before it is read again.'),
      cache_entries: leaf.count().default(100_000).describe('Keys, and customers, kept in memory at most.'),
      stale_if_error_seconds: leaf
        .seconds()
        .default(3600)
        .describe('How long a known key goes on being served while the store is away.'),
      failures_per_minute: leaf
        .count()
        .default(300)
        .describe(
          'Failed keys from one IPv4 address or IPv6 /64 within a minute, on each gateway; further ones get 429. A good key is never refused by this.',
        ),
      browser_keys: leaf
        .oneOf(BROWSER_KEY_MODES)
        .default('warn')
        .describe(
          'Good keys that a browser sends (Origin or Sec-Fetch-Site): allow lets them pass, warn also counts and logs them, reject refuses them.',
        ),
    })
    .prefault({})
    .describe('How callers identify themselves.'),
  identity: leaf
    .mapping({
      headers: leaf.flag().default(true).describe('Whether the backend gets X-Tollgate-Customer, -Plan and -Key-Id.'),
      assertion: leaf
        .mapping({
          issuer: leaf.stringOrUri().default('tollgate').describe('Its `iss`.'),
          ttl_seconds: leaf.assertionSeconds().default(60).describe('From `iat` to `exp`.'),
          signing_key_file: leaf
            .fileName()
            .describe(
              'Ed25519 keys in PEM: the first is private (PKCS#8) and signs; those after it are published with it.',
            ),
        })
        .optional()
        .describe('Gives the backend a signed statement of who calls, as X-Tollgate-Assertion.'),
    })
    .prefault({})
    .describe('What the backend is told of the caller.'),
  limits: limits.prefault({}).describe('What a request may cost before it is understood.'),
  shutdown: leaf
    .mapping({
      not_ready_ms: leaf
        .durationOrZeroMs()
        .default(5000)
        .describe('How long requests are still taken while /readyz says 503 already.'),
      drain_ms: leaf.durationOrZeroMs().default(20_000).describe('How long requests in flight may then take to end.'),
    })
    .prefault({})
    .describe('What happens on SIGTERM.'),
  logging: leaf
    .mapping({
      level: leaf.oneOf(LOG_LEVELS).default('info').describe('The least severe level that is logged.'),
      access: leaf
        .oneOf(ACCESS_LOG_MODES)
        .default('all')
        .describe(
          'Which requests get a line in the log: all, refusals and 5xx (errors), or none. Repeated refusals share one.',
        ),
      format: leaf
        .oneOf(LOG_FORMATS)
        .default('auto')
        .describe('JSON lines, or pretty ones for people; auto: pretty where standard output is a terminal.'),
    })
    .prefault({})
    .describe('The log, on standard output.'),
  seed: leaf
    .mapping({
      customers: leaf.listOf(seedCustomer.describe('A customer.')).describe('Customers to create, each with one key.'),
    })
    .optional()
    .describe('Demo customers, written at start unless they exist; on loopback with the embedded store only.'),
});

export type FileValues = z.output<typeof configSchema>;
