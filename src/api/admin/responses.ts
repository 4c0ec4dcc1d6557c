/**
 * The response documents of the admin API: the types of its handlers' responses, the checks of its client, and the
 * schemas of the OpenAPI file. Every member is always present unless it is optional here; null means not set.
 *
 * Checks that other programs' records could fail are in `.meta` only: the client must still list such records.
 */
import { z } from 'zod';
import { MAINTENANCE_MODES, PORTAL_SCOPES } from './allowed-values.ts';

const TEXT = z.string().nullable();
const COUNT = z.int().min(0);
const RECORD_PLAN = z.string().describe("As in the customer's record; possibly a former name of a plan.");
const USED = COUNT.describe('Includes the units of open leases.');
const HASH = z.string();

export const CUSTOMER_ID = z.string().meta({ pattern: '^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$', examples: ['acme'] });
const CUSTOMER_NAME = TEXT.describe("As in the customer's record; null if it has none, or the record cannot be read.");
const NAMED_CUSTOMER = { customer: CUSTOMER_ID, customer_name: CUSTOMER_NAME };
export const TIME = z.iso.datetime({ error: 'must be an ISO 8601 time in UTC, such as 2026-01-31T00:00:00Z' });
export const RECORD_TIME = TEXT.meta({
  description: 'ISO 8601 in UTC, or null. A value written by another program that is not a time is shown unchanged.',
  examples: ['2026-03-01T12:00:00.000Z'],
});
export const NEXT_CURSOR = TEXT.describe('The `cursor` of the next page; null on the last page.');

/** Returns the schema of a page of a list. */
function pageOf<Item extends z.ZodType>(item: Item) {
  return z.object({ items: z.array(item), next_cursor: NEXT_CURSOR });
}

/** RFC 9457. */
export const PROBLEM = z
  .object({
    type: z.string().meta({ format: 'uri', description: 'One for each code.' }),
    title: z.string().describe('One for each code.'),
    status: z.int(),
    detail: z.string().describe('What happened in this case. The text may change between versions.'),
    instance: z.string().meta({ pattern: '^urn:uuid:' }),
    request_id: z.string().meta({ format: 'uuid', description: 'The same id as in the log.' }),
    code: z.string().describe('Stable: programs should branch on this member.'),
    key_owner: z.enum(['this_customer', 'another_customer']).optional(),
  })
  .describe('RFC 9457.');
export type ProblemDocument = z.output<typeof PROBLEM>;

export const CURRENT_PLAN = TEXT.describe(
  "The plan's current name, which differs from `plan` after a rename. Null: the plan is not configured.",
);
export const EFFECTIVE_LIMIT = z.int().min(1).nullable().describe('Requests per hour; null if there is no limit.');
export const LIMIT_SOURCE = z
  .enum(['override', 'temporary', 'customer', 'plan'])
  .nullable()
  .describe(
    "What set the limit: an override in the configuration, else the customer's temporary limit, else its own number, else its plan.",
  );
export const LIMIT_PROBLEM = TEXT.describe('Why there is no limit. Requests of such customers get 403.');

const BEYOND = z.enum(['refuse', 'allow']).describe('Requests beyond it: refused, or served and counted as overage.');

const LIMIT_WINDOW = z.enum(['hourly', 'daily', 'monthly']);

export const EFFECTIVE_PERIOD = z
  .object({
    per: z.enum(['day', 'month']),
    limit: z.int().min(1),
    limit_source: z.enum(['override', 'customer', 'plan']),
    beyond: BEYOND,
  })
  .nullable()
  .describe('The limit of a day or month; null if the plan has none, or if there is no limit.');

const LIMIT = {
  limit: EFFECTIVE_LIMIT,
  limit_source: LIMIT_SOURCE,
  limit_problem: LIMIT_PROBLEM,
  limit_until: TIME.nullable().describe('When a temporary limit that applies now ends.'),
  limit_then: EFFECTIVE_LIMIT.describe('The limit from then on; null if there is none, or if `limit_until` is null.'),
  period: EFFECTIVE_PERIOD,
};

const SUSPENSION = {
  suspended: z.boolean().describe('Whether the customer is suspended now.'),
  suspended_until: TIME.nullable().describe('When the suspension ends; null if it has no end.'),
};

export const CUSTOMER = z.object({
  id: CUSTOMER_ID,
  name: TEXT,
  plan: RECORD_PLAN,
  current_plan: CURRENT_PLAN,
  requests_per_hour: z.int().nullable().describe("The customer's own limit."),
  period_requests: z.int().nullable().describe("The customer's own limit of a period."),
  period_anchor: TIME.nullable().describe('Its periods begin on this day of the month at this hour.'),
  temporary_limit: z
    .object({ requests_per_hour: z.int(), until: TIME })
    .nullable()
    .describe('Precedes the other limits of the record. Null also once it has ended.'),
  ...SUSPENSION,
  usage_reset_at: RECORD_TIME,
  period_reset_at: RECORD_TIME,
  notify_url: TEXT.describe(
    "Where the customer's own notices are sent. The origin alone for a JWT that may only read.",
  ),
  ...LIMIT,
});
export type CustomerDocument = z.output<typeof CUSTOMER>;
export const CUSTOMER_PAGE = pageOf(CUSTOMER);

export const NOTIFY_SECRET = z.object({
  secret: z.string().meta({ description: 'The secret itself.', examples: ['whsec_…'] }),
  former_valid_until: TIME.nullable().describe('Until then notices are signed with the former secret, too.'),
});

const PORTAL_ACCESS = { id: z.string().describe('Names it in the audit.') };

export const PORTAL_LINK = z.object({
  ...PORTAL_ACCESS,
  url: z.string().meta({
    description: 'Opens the session in a browser: once, and within five minutes.',
    examples: ['https://keys.example.com/portal#code=…'],
  }),
  expires_at: TIME.describe('The end of the session.'),
});

export const PORTAL_TOKEN = z.object({
  ...PORTAL_ACCESS,
  token: z.string().describe('The token itself.'),
  expires_at: TIME,
});

export const PORTAL_SCOPE = z.enum(PORTAL_SCOPES);

export const PERIOD_USAGE = z
  .object({
    per: z.enum(['day', 'month']),
    limit: z.int().min(1),
    used: COUNT.describe('As that of the hour. Without what a reset of the period forgave.'),
    remaining: COUNT,
    overage: COUNT.describe('Used beyond the limit so far.'),
    starts_at: TIME,
    ends_at: TIME,
    beyond: BEYOND,
  })
  .nullable()
  .describe('The present day or month; null if the plan has none.');

export const USAGE = z.object({
  limit: z.int().min(1),
  used: COUNT.describe(
    'Includes units that other gateways hold in leases and may refund within ten seconds. Above the limit if the limit was lowered.',
  ),
  remaining: COUNT,
  reset_seconds: COUNT.describe('Time until more requests are available; 0 if nothing is used.'),
  window_seconds: z.int().meta({ const: 3600 }),
  period: PERIOD_USAGE,
});
export type UsageDocument = z.output<typeof USAGE>;

const CUSTOMER_USAGE = z.object({
  ...NAMED_CUSTOMER,
  plan: RECORD_PLAN,
  current_plan: CURRENT_PLAN,
  suspended: z.boolean(),
  limit: EFFECTIVE_LIMIT,
  limit_source: LIMIT_SOURCE,
  used: USED,
  percent: COUNT.nullable().describe('Used share of the limit, rounded down.'),
  period: PERIOD_USAGE,
});
export type CustomerUsageDocument = z.output<typeof CUSTOMER_USAGE>;
export const USAGE_PAGE = pageOf(CUSTOMER_USAGE);

const POINT = {
  start: TIME.describe('Start of the hour or day, in UTC.'),
  open: z.literal(true).optional().describe('Present while the hour or day is not over.'),
};
const STEP = z.enum(['hour', 'day']);

export const USAGE_HISTORY = z.object({
  customer: CUSTOMER_ID,
  step: STEP,
  points: z
    .array(
      z.object({
        ...POINT,
        requests: COUNT.describe('Requests that were sent to the backend. Exact while every route takes one unit.'),
        units: COUNT.describe('What they took from the quota. Exact.'),
        refused: COUNT.describe('Refused requests. Approximate: see docs/usage.md.'),
        refused_by_code: z.record(z.string(), COUNT).optional().describe('Absent if none was refused.'),
      }),
    )
    .describe('One for each hour or day of the range, oldest first.'),
});

const CLOSED_PERIOD = z.object({
  id: z.string().describe('`<customer>/<starts_at>`.'),
  customer: CUSTOMER_ID,
  plan: z.string().describe('As `included`: that of the last request that counted in the period.'),
  starts_at: TIME,
  ends_at: TIME.describe('Exclusive.'),
  included: COUNT.describe('The limit of the period.'),
  used: COUNT.describe('What counted in the period. Exact.'),
  overage: COUNT.describe('Used beyond the limit, without what a reset of the period forgave.'),
});
export type ClosedPeriodDocument = z.output<typeof CLOSED_PERIOD>;
export const PERIOD_PAGE = pageOf(CLOSED_PERIOD);

const PLAN_TOTALS = z.object({ requests: COUNT, refused: COUNT, upstream_errors: COUNT });

export const USAGE_TOTALS = z.object({
  step: STEP,
  points: z
    .array(
      z.object({
        ...POINT,
        plans: z
          .record(z.string(), PLAN_TOTALS)
          .describe(
            'By plan; `none`: without a valid key, or on a route that needs none, `unchecked`: refused before the key was checked.',
          ),
      }),
    )
    .describe('One for each hour or day of the range, oldest first. Approximate: see docs/usage.md.'),
});

export type UsageHistoryDocument = z.output<typeof USAGE_HISTORY>;
export type UsageTotalsDocument = z.output<typeof USAGE_TOTALS>;

export const NEAR_CUSTOMERS = z.array(
  z.object({
    ...NAMED_CUSTOMER,
    plan: RECORD_PLAN,
    window: LIMIT_WINDOW.describe('The limit with the highest percentage, which the following members describe.'),
    limit: z.int().min(1),
    used: USED,
    percent: COUNT.describe('Used share of the limit, rounded down.'),
    reset_seconds: COUNT.describe('Time until more requests are available.'),
  }),
);
export type NearCustomerDocument = z.output<typeof NEAR_CUSTOMERS>[number];

const REFUSALS_OF_CODE = {
  code: z.string().describe('See docs/errors.md.'),
  count: z.int().min(1),
  first_at: TIME,
  last_at: TIME,
  key_id: TEXT.describe('The key of the most recent one.'),
};

export const REFUSED_CUSTOMERS = z.array(z.object({ ...NAMED_CUSTOMER, ...REFUSALS_OF_CODE }));
export type RefusedCustomerDocument = z.output<typeof REFUSED_CUSTOMERS>[number];

const CALLS_OF_ROUTE = {
  route: z.string().describe('Its `path` in the configuration.'),
  count: COUNT.describe('Requests that were forwarded, or checks that were admitted.'),
  gone: COUNT.describe('Requests that were refused with 410.'),
  last_at: TIME,
};

export const DEPRECATED_CALLS = z.object({
  items: z.array(z.object({ ...NAMED_CUSTOMER, plan: RECORD_PLAN, ...CALLS_OF_ROUTE })),
});
export type DeprecatedCallsDocument = z.output<typeof DEPRECATED_CALLS>['items'][number];

/** Of one customer, with what becomes of each route. */
export const OWN_DEPRECATED_CALLS = z.object({
  items: z.array(
    z.object({
      ...CALLS_OF_ROUTE,
      deprecated_at: TEXT.describe('When the path is, or was, deprecated.'),
      sunset_at: TEXT.describe('From when on it responds with 410.'),
      successor: TEXT.describe('URL of what replaces it.'),
    }),
  ),
});

export const EXPLANATION = z.object({
  customer: CUSTOMER_ID,
  admitted: z.boolean().describe('Whether a request of the customer would be admitted now.'),
  verdict: z.string().describe('The same in words: if not, why.'),
  plan: RECORD_PLAN,
  current_plan: CURRENT_PLAN,
  ...SUSPENSION,
  ...LIMIT,
  origin: z.string().meta({
    description: "The line of the configuration file that set the limit, or the member of the customer's record.",
    examples: ['config/gateway.yaml:41', 'customer record: requests_per_hour', 'customer record: temporary_limit'],
  }),
  period_origin: TEXT.describe('The same of the limit of a day or month; null without one.'),
  refusing_keys: z
    .array(
      z.object({
        key_id: z.string(),
        limit: z.int().min(1).nullable().describe('Null: unreadable.'),
        used: COUNT.nullable(),
        reset_seconds: COUNT.nullable(),
      }),
    )
    .describe('Valid keys of which all requests are refused now by their own limit; at most 20.'),
  usage: USAGE.nullable().describe('Null if there is no limit, or the store is unavailable.'),
  instance: z
    .object({
      leases: z
        .array(z.object({ units: z.int().min(1), ends_in_seconds: z.number().min(0) }))
        .describe('Units that were granted to it and are not used yet.'),
      refuses_for_seconds: z
        .number()
        .nullable()
        .describe('For how long it refuses requests without asking the store; null if it does not.'),
      refusals: z
        .array(z.object(REFUSALS_OF_CODE))
        .describe('Refused requests of the last hour, by code, most recent first.'),
    })
    .describe('State in the memory of the instance that served this request.'),
  refusals: z
    .array(z.object(REFUSALS_OF_CODE))
    .describe(
      'Requests that any instance refused in this hour or the one before, by code, most recent first. Of other instances: up to 10 s late, with the start of the hour as `first_at` and without the key.',
    ),
});
export type ExplanationDocument = z.output<typeof EXPLANATION>;

const RESTRICTION = z.array(z.string()).nullable();

/** The response to an import: the key itself is not repeated. */
const IMPORTED_KEY = z.object({
  id: z.string(),
  prefix: TEXT.describe('For people to recognise the key. Null: the key is too short to show a part, or unknown.'),
  customer: CUSTOMER_ID,
  name: TEXT,
  created_at: RECORD_TIME,
  expires_at: RECORD_TIME,
  scopes: RESTRICTION.describe('Null: all routes. Empty: unreadable, so all requests get 403.'),
  allowed_addresses: RESTRICTION.describe('Null: all addresses. Empty: unreadable, so all requests get 403.'),
  requests_per_hour: COUNT.nullable().describe(
    'The own limit of the key. Null: only that of its customer. 0: unreadable, so all requests get 403.',
  ),
});

/** `key` is the API key itself: no other response ever contains it. */
const GENERATED_KEY = z.object({ key: z.string().describe('The key itself.'), ...IMPORTED_KEY.shape });
export const ROTATED_KEY = GENERATED_KEY.extend({ replaces: z.string().describe('The id of the old key.') });
export const NEW_KEY = GENERATED_KEY.partial({ key: true }).describe('Without `key` if the key was imported.');

export const KEY = z.object({
  id: IMPORTED_KEY.shape.id,
  state: z
    .enum(['live', 'rotated', 'expired', 'revoked'])
    .describe('`rotated`: replaced, and valid until `expires_at`. Whether the customer is suspended does not matter.'),
  ...IMPORTED_KEY.omit({ id: true }).shape,
  customer: z.string().describe('Possibly a customer without a record.'),
  customer_name: CUSTOMER_NAME,
  revoked_at: RECORD_TIME,
  replaced_by: TEXT.describe('The id of its successor.'),
  last_used_at: TEXT.meta({ format: 'date-time', description: 'Precise to about a minute.' }),
  used: USED.nullable().describe(
    'Units of the last hour, with those of open leases, of the key and of those that it replaced. Null: the key has no limit, or the store is unavailable.',
  ),
});
export type KeyDocument = z.output<typeof KEY>;
export const KEY_PAGE = pageOf(KEY);

export const KEY_USAGE = z
  .object({
    limit: z.int().min(1).nullable(),
    used: COUNT.nullable(),
    remaining: COUNT.nullable(),
    reset_seconds: COUNT.nullable().describe('Time until more requests are available; 0 if nothing was used.'),
    window_seconds: z.literal(3600),
  })
  .describe('Null: the key has no limit of its own.');

export const NOTICE_STATES = ['pending', 'dead'] as const;

export const NOTICE = z.object({
  id: z.string().describe('Sent as `webhook-id`.'),
  type: z.enum(['quota.threshold', 'quota.exceeded', 'key.expiring']),
  ...NAMED_CUSTOMER,
  created_at: TIME,
  deliveries: z
    .array(
      z.object({
        endpoint: z
          .string()
          .describe("The URL of an endpoint in the configuration, or `notify_url` of the customer's record."),
        state: z.enum(NOTICE_STATES).describe('`dead`: all attempts failed, or the endpoint is disabled.'),
        attempts: COUNT.describe('Failed attempts.'),
        next_attempt_at: TIME.nullable(),
        last_error: TEXT,
      }),
    )
    .describe('One for each endpoint that does not have the notice. Empty before the first attempt.'),
});
export type NoticeDocument = z.output<typeof NOTICE>;
export const NOTICE_PAGE = pageOf(NOTICE);

export const NOTICE_TEST = z.object({
  results: z.array(
    z.object({
      endpoint: z.string().describe('As in an undelivered notice.'),
      result: z.enum(['delivered', 'failed', 'gone']).describe('`gone`: the response was 410.'),
      reason: TEXT.describe('Why it failed.'),
    }),
  ),
});

export type NoticeTestDocument = z.output<typeof NOTICE_TEST>;

export const FAILED_REQUEST = z.object({
  request_id: z.string().describe('A client may choose it, so several requests may have the same one.'),
  at: TIME.describe("When the request ended, by the store's clock."),
  status: z.int().describe('499: the client closed the connection before there was a response.'),
  code: TEXT.describe('See docs/errors.md. Null: the response is that of the backend, or the client left.'),
  source: z
    .enum(['gateway', 'upstream', 'check'])
    .describe('Whose response it is: `upstream` is the backend, `check` the check listener.'),
  customer: TEXT.describe('Null: without a known key.'),
  key_id: TEXT,
  method: z.string().describe('As the client sent it.'),
  route: z.string().describe('Its `path` in the configuration, or `none`.'),
  client: TEXT.describe("The client's address."),
  backend: TEXT.describe('Name of the backend of the route.'),
  upstream: TEXT.describe('To which the request was sent. Null: to none.'),
  failure: TEXT.describe("Why the backend's response is missing or incomplete; see docs/operations.md."),
  duration_ms: z.number().nullable(),
});
export type FailedRequestDocument = z.output<typeof FAILED_REQUEST>;
export const FAILED_REQUESTS = z.object({ items: z.array(FAILED_REQUEST).meta({ maxItems: 20 }) });
export const FAILED_REQUEST_PAGE = pageOf(FAILED_REQUEST);

export const MAINTENANCE = z.object({
  mode: z.enum(MAINTENANCE_MODES).describe('`off` also once `until` has passed. Then the other members are null.'),
  routes: z.array(z.string()).nullable().describe('Null: all routes.'),
  until: TIME.nullable().describe('When it ends by itself; null if it has no end.'),
  message: TEXT.describe('For clients, as the `detail` of their refusals; null: default words.'),
  since: TIME.nullable().describe('When it began: a change of a maintenance that is in force does not move it.'),
});
export type MaintenanceDocument = z.output<typeof MAINTENANCE>;

/** What the admin API and the portal change and record, each with its message in the log. */
export const RECORDED_CHANGES = {
  'customer.create': 'customer created',
  'customer.update': 'customer updated',
  'customer.delete': 'customer deleted',
  'customer.notify_secret': 'secret for notices created',
  'usage.reset': 'usage reset',
  'key.create': 'key created',
  'key.import': 'key imported',
  'key.update': 'key updated',
  'key.revoke': 'key revoked',
  'key.rotate': 'key rotated',
  'config.reload': 'configuration reloaded by the admin API',
  'config.preview': 'configuration file previewed',
  'session.create': 'console session created',
  'portal_session.create': 'link to the portal created',
  'portal_session.open': 'portal session opened',
  'portal_session.end': 'portal sessions ended',
  'portal_token.create': 'token for the portal created',
  'notice.retry': 'notice sent again',
  'maintenance.set': 'maintenance set',
  'notice.test': 'test notice sent',
} as const;
export type RecordedChange = keyof typeof RECORDED_CHANGES;

export type AuditAction = RecordedChange | 'endpoint.disable' | 'access.refused';
export const AUDIT_ACTIONS: readonly AuditAction[] = [
  ...(Object.keys(RECORDED_CHANGES) as RecordedChange[]),
  'endpoint.disable',
  'access.refused',
];

const AUDIT_VALUES = z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])).nullable();

export const AUDIT_ENTRY = z.object({
  id: z.string(),
  at: TIME,
  actor: z.string().meta({
    pattern: '^(token(:|$)|unknown$|gateway$|jwt:|portal:)',
    description:
      '`token`, with the name that a person gave at the login of the console after a colon; `jwt:` and the subject; `portal:` and the customer; `unknown` for refused access, `gateway` for what a gateway did itself.',
  }),
  from: z.string().describe('The address of the client; `-` for the gateway itself.'),
  action: z.string().meta({ enum: AUDIT_ACTIONS }),
  customer: TEXT,
  customer_name: CUSTOMER_NAME,
  key_id: TEXT,
  details: AUDIT_VALUES.describe('The members of the change and their new values, named as in this API. Never a key.'),
  before: AUDIT_VALUES.describe(
    'The former values of the members that changed. Null if none did, and in entries of earlier versions.',
  ),
});
export type AuditDocument = z.output<typeof AUDIT_ENTRY>;
export const AUDIT_PAGE = pageOf(AUDIT_ENTRY);

const PLAN_LIMIT = z.union([z.int(), z.literal('custom')]);

export const CONFIGURATION = z
  .looseObject({
    plans: z.record(
      z.string(),
      z.looseObject({
        requests_per_hour: PLAN_LIMIT,
        period: z.looseObject({ per: z.enum(['day', 'month']), requests: PLAN_LIMIT }).nullish(),
      }),
    ),
    overrides: z.record(z.string(), z.looseObject({ period_requests: z.int().nullish() })).nullish(),
    usage: z.looseObject({ hours_days: z.int(), days: z.int() }).nullish(),
    // Gateways before 0.3.0 have no key_headers.
    auth: z.looseObject({ key_headers: z.array(z.string()).optional() }).optional(),
    portal: z.looseObject({}).nullish(),
    console: z.object({ name: z.string().nullable(), color: z.string() }).nullish(),
  })
  .describe(
    'Named as in the configuration file (docs/configuration.md). Every key is present, defaults included; null means not set. Secrets are hidden.',
  );
export type ConfigDocument = z.output<typeof CONFIGURATION>;

export const CONFIGURATION_FILE = z
  .looseObject({})
  .describe(
    'Named as in the configuration file. Only the keys that it sets, as written there; `(secret)` for a secret.',
  );
export type ConfigFileDocument = z.output<typeof CONFIGURATION_FILE>;

export const CONFIGURATION_CHANGE = z.object({
  key: z.string().meta({ description: 'As in docs/configuration.md.', examples: ['plans.starter.requests_per_hour'] }),
  before: z.unknown().describe('Null: not set. Secrets are hidden.'),
  after: z.unknown().describe('Null: not set. Secrets are hidden.'),
  takes_effect: z.enum(['reload', 'restart']),
  text: z.string().meta({ examples: ['plans.starter.requests_per_hour: 1000 → 800', 'plan business is now premium'] }),
});

const CHANGES = {
  changes: z.array(CONFIGURATION_CHANGE).meta({ maxItems: 100 }),
  changes_total: COUNT.describe('Number of all changes; `changes` lists at most 100.'),
};

export const RELOAD = z.object({
  result: z.enum(['applied', 'unchanged']),
  hash: HASH.describe('Of the configuration that now runs.'),
  ...CHANGES,
  warnings: z.array(z.string()).meta({
    description: 'Settings of the running file that may not work or are dangerous.',
    examples: [
      ['gateway.yaml:3: warning: limits.header_bytes: is below 1024 bytes: common clients send more and get 431'],
    ],
  }),
});
export type ReloadDocument = z.output<typeof RELOAD>;

export const PREVIEW = z.object({
  running_hash: HASH,
  hash: HASH,
  reload: z
    .enum(['applied', 'unchanged', 'restart_required', 'plan_in_use'])
    .describe('The result of a reload of this file now, ignoring secrets and the content of named files.'),
  changes: CHANGES.changes.describe(
    'A value that contains a variable is shown as written, with the name of the variable.',
  ),
  changes_total: CHANGES.changes_total,
  uncompared_secrets: z
    .array(z.string().meta({ examples: ['admin.token'] }))
    .describe('Secret settings that are set in both files and may differ.'),
  dropped_plans: z
    .array(z.object({ plan: z.string(), customers: z.int().min(1) }))
    .describe('Plans that the file lacks although customers are on them.'),
  customers: z
    .object({
      total: COUNT,
      raised: COUNT.describe('Customers of whom a limit rises or is gone, and none falls or is new.'),
      lowered: COUNT.describe('Customers of whom a limit falls, or that of a day or month is new.'),
      gained: COUNT.describe('Customers that have a limit only with the new file.'),
      lost: COUNT.describe('Customers that have a limit only with the running file.'),
      refused: COUNT.describe('Customers whose next request the new file would refuse.'),
      newly_refused: COUNT.describe('Customers in `refused` that the running file does not refuse.'),
      near: COUNT.describe('Customers that have used at least 80 % of the new limit, but not all of it.'),
    })
    .describe(
      'Numbers of customers, each counted once. A period that allows overage refuses nothing, so it is no limit here.',
    ),
  limits: z
    .array(
      z.object({
        change: z.string().meta({ examples: ['starter 1000 → 800', 'starter 50000 → 40000 per month', 'overrides'] }),
        window: LIMIT_WINDOW,
        customers: z.int().min(1),
        refused: COUNT,
      }),
    )
    .describe(
      'Limits that change, those of hours, days and months apart, with the number of customers that each concerns.',
    ),
  closest: z
    .array(
      z.object({
        ...NAMED_CUSTOMER,
        plan: z.string(),
        window: LIMIT_WINDOW.describe('The limit of which the customer used the greatest share, by the new file.'),
        limit_before: EFFECTIVE_LIMIT,
        limit_after: EFFECTIVE_LIMIT,
        used: USED,
        ratio: z.number().nullable().describe('Used requests divided by the new limit.'),
        state: z.enum(['refused', 'near']),
      }),
    )
    .meta({
      maxItems: 100,
      description:
        '100 refused and near customers: first those whose limit changes, each part by the used share of the limit; those without a limit first.',
    }),
});
export type PreviewDocument = z.output<typeof PREVIEW>;

const STATUS_PROBLEM = z.object({
  what: z.string(),
  advice: z.string().describe('What to do.'),
  detail: TEXT.describe('Such as the error, or what is affected; may have several lines.'),
});
export type StatusProblemDocument = z.output<typeof STATUS_PROBLEM>;

export const STATUS = z.object({
  problems: z
    .array(STATUS_PROBLEM)
    .describe('What needs an operator now, or will at the next restart. Empty if the gateway is healthy.'),
  version: z.string(),
  started_at: TIME,
  uptime_seconds: COUNT,
  config: z.object({
    file: z.string(),
    hash: HASH,
    loaded_at: TIME.describe('When the file was last found to match the running configuration.'),
    last_reload: z
      .object({
        at: TIME,
        result: z.enum(['applied', 'unchanged', 'invalid', 'restart_required', 'plan_in_use', 'unverified', 'failed']),
        changes: z.array(z.string()).describe('As text, the first 100.'),
        error: TEXT.describe('Why the file was not applied; null if it was.'),
      })
      .nullable()
      .describe('Null: the file has not changed since the start.'),
  }),
  store: z.object({
    kind: z.enum(['redis', 'embedded']),
    up: z.boolean(),
    reached: z.boolean().describe('Whether it has responded since the start.'),
    wiped: z.boolean().describe('It lost its data; see docs/redis.md.'),
    empty: z.boolean().describe('It has no record, so unknown keys get 503; see docs/redis.md.'),
    evicted: z
      .boolean()
      .describe('Redis evicted keys: quotas, usage history and perhaps records are lost; see docs/redis.md.'),
    refusing: z.boolean().describe('It is reachable but refuses the writes of quotas.'),
    last_error: TEXT,
  }),
  invalidation: z.object({ connected: z.boolean().describe('Whether changes to keys and customers are pushed.') }),
  maintenance: MAINTENANCE.describe(
    'The maintenance that this gateway applies. While the store is away, it is the last one that was read.',
  ),
  instances: z.int().min(1).describe('Instances that reported to the store within the last hour.'),
  notices: z
    .object({ pending: COUNT, dead: COUNT.describe('All attempts failed: `tollgate notices list`.') })
    .nullable()
    .describe(
      'Notices of all gateways that are not delivered, as of a few seconds ago. Null: notices are not configured.',
    ),
  customers_without_plan: z
    .object({ customers: COUNT, plans: z.array(z.string()).describe('The names in their records: the first 10.') })
    .nullable()
    .describe('Customers on plans that are not configured: all their requests get 403. Null: not counted yet.'),
  fleet: z
    .array(
      z.object({
        id: z.string().describe('Changes with each start.'),
        announced_at: TIME.describe('Of the last announcement, which is repeated every 10 seconds.'),
        host: TEXT,
        pid: z.int().nullable(),
        version: TEXT,
        started_at: TIME.nullable(),
        config_hash: TEXT.describe('Hash of the configuration that it runs.'),
      }),
    )
    .nullable()
    .describe(
      'These instances, each worker by itself, latest announcement first. Null: the store cannot be read. Members are null for instances of earlier versions.',
    ),
  check: z
    .object({
      address: z.string().describe('Host and port, as in the configuration.'),
      has_token: z.boolean().describe('Whether each check must have the token.'),
    })
    .nullable()
    .describe('The check listener, see docs/check.md. Null: there is none.'),
  upstreams: z.array(
    z.object({
      backend: z.string().describe('Name of the backend: `default`, or a name in `upstreams`.'),
      url: z.string().meta({ format: 'uri', description: 'Origin and base path, as in `urls` of the backend.' }),
      up: z.boolean().describe('Whether it gets requests.'),
      reason: z
        .enum(['unreachable', 'failing', 'health_check'])
        .nullable()
        .describe('Why it gets no requests; see docs/upstreams.md.'),
      fault: TEXT.describe('The last failure of the kind that `reason` names.'),
    }),
  ),
  workers: z
    .array(
      z.object({
        id: z.int().min(1).describe('Of the worker slot; a replacement process has the same id.'),
        pid: z.int().nullable().describe('Null while the process is being replaced.'),
        started_at: TIME.nullable(),
        ready: z.boolean().describe('Whether it serves requests and reaches the store.'),
        config_hash: TEXT.describe('Hash of the configuration that it runs; null before it runs one.'),
        restarts: COUNT.describe('How often the process was replaced.'),
      }),
    )
    .describe('Empty if a single process does everything.'),
});
export type StatusDocument = z.output<typeof STATUS>;

/** The session of the console. It is no part of the API for programs, so it has no schema. */
export interface SessionDocument {
  /** As in the audit. */
  readonly actor: string;
  readonly scope: 'read' | 'write';
  /** `authorization`: a single sign-on proxy sends credentials with each request, and a logout has no effect. */
  readonly via: 'cookie' | 'authorization';
  /** ISO 8601; null: the admin token in an Authorization header does not expire. */
  readonly expires_at: string | null;
  /** The header in which clients send a key: the first of `auth.key_headers`. */
  readonly key_header: string;
  /** `console` of the configuration. */
  readonly installation: { readonly name: string | null; readonly color: string } | null;
  /** Only in the response to a login. */
  readonly binding?: string;
}
