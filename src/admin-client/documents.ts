/** Schemas of the admin API's responses, with the members that its clients use; other members are kept. */
import { z } from 'zod';

const TEXT = z.string().nullable();
const COUNT = z.number().nullable();

export const CUSTOMER = z.looseObject({
  id: z.string(),
  name: TEXT,
  plan: z.string(),
  requests_per_hour: COUNT,
  suspended: z.boolean(),
  limit: COUNT,
  limit_source: TEXT,
});
export type CustomerDocument = z.output<typeof CUSTOMER>;

export const KEY = z.looseObject({
  id: z.string(),
  prefix: TEXT,
  customer: z.string(),
  name: TEXT,
  created_at: TEXT,
  expires_at: TEXT,
  revoked_at: TEXT,
  replaced_by: TEXT,
  last_used_at: TEXT,
});
export type KeyDocument = z.output<typeof KEY>;

/** `key` is the API key itself: no other response ever contains it. */
export const NEW_KEY = z.looseObject({ key: z.string(), id: z.string(), customer: z.string(), expires_at: TEXT });
export type NewKeyDocument = z.output<typeof NEW_KEY>;

export const ROTATED_KEY = z.looseObject({ ...NEW_KEY.shape, replaces: z.string() });

export const IMPORTED_KEY = z.looseObject({ id: z.string() });

export const USAGE = z.looseObject({
  limit: z.number(),
  used: z.number(),
  remaining: z.number(),
  reset_seconds: z.number(),
  window_seconds: z.number(),
});

export const CUSTOMER_USAGE = z.looseObject({
  customer: z.string(),
  plan: z.string(),
  limit: COUNT,
  used: z.number(),
  percent: COUNT,
});
export type CustomerUsageDocument = z.output<typeof CUSTOMER_USAGE>;

export const EXPLANATION = z.looseObject({
  customer: z.string(),
  limit: COUNT,
  limit_source: TEXT,
  origin: TEXT,
  usage: USAGE.nullable(),
  instance: z.looseObject({
    leases: z.array(z.looseObject({ units: z.number(), ends_in_seconds: z.number() })),
    refuses_for_seconds: COUNT,
    refusals: z.array(
      z.looseObject({
        code: z.string(),
        count: z.number(),
        first_at: z.string(),
        last_at: z.string(),
        key_id: TEXT,
      }),
    ),
  }),
});

export const PREVIEW = z.looseObject({
  reload: z.enum(['applied', 'unchanged', 'restart_required', 'plan_in_use']),
  changes: z.array(z.looseObject({ key: z.string(), takes_effect: z.string(), text: z.string() })),
  changes_total: z.number().optional(),
  uncompared_secrets: z.array(z.string()).default([]),
  dropped_plans: z.array(z.looseObject({ plan: z.string(), customers: z.number() })),
  customers: z.looseObject({
    total: z.number(),
    raised: z.number(),
    lowered: z.number(),
    gained: z.number(),
    lost: z.number(),
    refused: z.number(),
    newly_refused: z.number(),
    near: z.number(),
  }),
  limits: z.array(z.looseObject({ change: z.string(), customers: z.number(), refused: z.number() })),
  closest: z.array(
    z.looseObject({
      customer: z.string(),
      plan: z.string(),
      limit_before: COUNT,
      limit_after: COUNT,
      used: z.number(),
      ratio: COUNT,
      state: z.string(),
    }),
  ),
});
export type PreviewDocument = z.output<typeof PREVIEW>;

export const CONFIG = z.looseObject({
  plans: z.record(z.string(), z.looseObject({ requests_per_hour: z.union([z.number(), z.literal('custom')]) })),
  overrides: z.record(z.string(), z.unknown()).nullish(),
});
export type ConfigDocument = z.output<typeof CONFIG>;

export const RELOAD = z.looseObject({
  result: z.string(),
  hash: z.string(),
  changes: z.array(z.looseObject({ text: z.string() })),
  changes_total: z.number(),
  warnings: z.array(z.string()),
});
export type ReloadDocument = z.output<typeof RELOAD>;

export const STATUS = z.looseObject({
  version: z.string(),
  started_at: z.string(),
  uptime_seconds: z.number(),
  config: z.looseObject({
    file: z.string(),
    hash: z.string(),
    loaded_at: z.string(),
    last_reload: z
      .looseObject({ at: z.string(), result: z.string(), changes: z.array(z.string()).default([]), error: TEXT })
      .nullable(),
  }),
  store: z.looseObject({
    kind: z.string(),
    up: z.boolean(),
    wiped: z.boolean(),
    empty: z.boolean(),
    evicted: z.boolean(),
    refusing: z.boolean(),
    last_error: TEXT,
  }),
  invalidation: z.looseObject({ connected: z.boolean() }),
  instances: z.number(),
  upstreams: z.array(z.looseObject({ url: z.string(), up: z.boolean(), reason: TEXT, fault: TEXT })),
  workers: z.array(
    z.looseObject({
      id: z.number(),
      pid: COUNT,
      started_at: TEXT,
      ready: z.boolean(),
      config_hash: TEXT,
      restarts: z.number(),
    }),
  ),
});
export type StatusDocument = z.output<typeof STATUS>;

export const AUDIT_ENTRY = z.looseObject({
  id: z.string(),
  at: z.string(),
  actor: z.string(),
  from: z.string(),
  action: z.string(),
  customer: TEXT,
  key_id: TEXT,
  details: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])).nullable(),
});
export type AuditDocument = z.output<typeof AUDIT_ENTRY>;

/** RFC 9457, with the members that every problem of the gateway has. */
export const PROBLEM = z.looseObject({
  title: z.string(),
  status: z.number(),
  detail: z.string(),
  code: z.string(),
  request_id: z.string(),
});
export type ProblemDocument = z.output<typeof PROBLEM>;
