/**
 * The routes of the admin API, each with its query, body and reply. The admin listener takes its router from this table,
 * and Tollgate's own clients their calls. `npm run docs` generates the operations of docs/openapi/admin.yaml from it, with
 * the texts of scripts/admin-operations.ts.
 */
import { z } from 'zod';
import * as query from './queries.ts';
import {
  customerChange,
  keyChange,
  keyCreation,
  maintenanceChange,
  newCustomer,
  PORTAL_SESSION_REQUEST,
  ROTATION,
} from './requests.ts';
import * as document from './responses.ts';
import type { CheckedRequest, Reply, RouteTable, SentRequest } from './route-table.ts';

const PAGE = { limit: query.LIMIT, cursor: query.CURSOR };
const CUSTOMER_FILTER = { plan: query.PLAN, suspended: query.SUSPENDED, search: query.SEARCH };
const RANGE = { from: query.FROM, to: query.TO };

/** By method and path, which is as in Express. */
export const ADMIN_ROUTES = {
  'GET /status': { reply: document.STATUS },
  'GET /admin/v1/config': { reply: document.CONFIGURATION },
  'GET /admin/v1/config/file': { reply: document.CONFIGURATION_FILE },
  'POST /admin/v1/config/reload': { reply: document.RELOAD },
  'POST /admin/v1/config/preview': { body: 'yaml', reply: document.PREVIEW },
  'GET /admin/v1/customers': {
    query: z.strictObject({ ...PAGE, ...CUSTOMER_FILTER, id_prefix: query.ID_PREFIX }),
    reply: document.CUSTOMER_PAGE,
  },
  'POST /admin/v1/customers': { body: newCustomer, status: 201, reply: document.CUSTOMER },
  'GET /admin/v1/usage': {
    query: z.strictObject({ ...PAGE, ...CUSTOMER_FILTER, above: query.ONLY_ABOVE }),
    reply: document.USAGE_PAGE,
  },
  'GET /admin/v1/customers/:id': { reply: document.CUSTOMER },
  'PATCH /admin/v1/customers/:id': { body: customerChange, reply: document.CUSTOMER },
  'DELETE /admin/v1/customers/:id': {},
  'POST /admin/v1/customers/:id/notify-secret': { status: 201, reply: document.NOTIFY_SECRET },
  'POST /admin/v1/customers/:id/portal-sessions': {
    body: () => PORTAL_SESSION_REQUEST,
    status: 201,
    reply: document.PORTAL_LINK,
  },
  'DELETE /admin/v1/customers/:id/portal-sessions': {},
  'POST /admin/v1/customers/:id/portal-tokens': {
    body: () => PORTAL_SESSION_REQUEST,
    status: 201,
    reply: document.PORTAL_TOKEN,
  },
  'GET /admin/v1/customers/:id/usage': { reply: document.USAGE },
  'DELETE /admin/v1/customers/:id/usage': { query: z.strictObject({ window: query.WINDOW }) },
  'GET /admin/v1/customers/:id/usage/history': {
    query: z.strictObject({ ...RANGE, step: query.STEP }),
    reply: document.USAGE_HISTORY,
  },
  'GET /admin/v1/usage/history': {
    query: z.strictObject({ ...RANGE, step: query.STEP }),
    reply: document.USAGE_TOTALS,
  },
  'GET /admin/v1/usage/near': {
    query: z.strictObject({ above: query.ABOVE, limit: query.LIMIT }),
    reply: document.NEAR_CUSTOMERS,
  },
  'GET /admin/v1/usage/refused': { query: z.strictObject({ limit: query.LIMIT }), reply: document.REFUSED_CUSTOMERS },
  'GET /admin/v1/routes/deprecated/customers': { reply: document.DEPRECATED_CALLS },
  'GET /admin/v1/usage/export': {
    query: z.strictObject({ ...RANGE, format: query.EXPORT_FORMAT, limit: query.EXPORT_LIMIT, cursor: query.CURSOR }),
    reply: 'text',
  },
  'GET /admin/v1/usage/periods': {
    query: z.strictObject({
      ...PAGE,
      ended_after: query.ENDED_AFTER,
      ended_before: query.ENDED_BEFORE,
      format: query.PERIOD_FORMAT,
    }),
    reply: document.PERIOD_PAGE,
  },
  'GET /admin/v1/customers/:id/explain': { reply: document.EXPLANATION },
  'GET /admin/v1/customers/:id/keys': { query: z.strictObject(PAGE), reply: document.KEY_PAGE },
  'POST /admin/v1/customers/:id/keys': { body: keyCreation, status: 201, reply: document.NEW_KEY },
  'GET /admin/v1/keys': {
    query: z.strictObject({
      ...PAGE,
      unused_days: query.UNUSED_DAYS,
      expiring_days: query.EXPIRING_DAYS,
      search: query.KEY_SEARCH,
      prefix: query.KEY_PREFIX,
      sha256: query.SHA256,
      id: query.KEY_ID,
    }),
    reply: document.KEY_PAGE,
  },
  'GET /admin/v1/keys/:keyId': { reply: document.KEY },
  'PATCH /admin/v1/keys/:keyId': { body: keyChange, reply: document.KEY },
  'DELETE /admin/v1/keys/:keyId': {},
  'GET /admin/v1/keys/:keyId/usage': { reply: document.KEY_USAGE },
  'DELETE /admin/v1/keys/:keyId/usage': {},
  'POST /admin/v1/keys/:keyId/rotate': { body: () => ROTATION, status: 201, reply: document.ROTATED_KEY },
  'GET /admin/v1/notices': {
    query: z.strictObject({ ...PAGE, state: query.NOTICE_STATE, id: query.NOTICE_ID }),
    reply: document.NOTICE_PAGE,
  },
  'POST /admin/v1/notices/test': {
    query: z.strictObject({ customer: query.AUDIT_CUSTOMER }),
    reply: document.NOTICE_TEST,
  },
  'POST /admin/v1/notices/:id/retry': { reply: document.NOTICE },
  'GET /admin/v1/requests': {
    query: z.strictObject({ ...PAGE, customer: query.REQUEST_CUSTOMER, code: query.REQUEST_CODE }),
    reply: document.FAILED_REQUEST_PAGE,
  },
  'GET /admin/v1/requests/:requestId': { reply: document.FAILED_REQUESTS },
  'GET /admin/v1/maintenance': { reply: document.MAINTENANCE },
  'PUT /admin/v1/maintenance': { body: maintenanceChange, reply: document.MAINTENANCE },
  'GET /admin/v1/audit': {
    query: z.strictObject({ ...PAGE, ...RANGE, customer: query.AUDIT_CUSTOMER, action: query.AUDIT_ACTION }),
    reply: document.AUDIT_PAGE,
  },
} as const satisfies RouteTable;

type Routes = typeof ADMIN_ROUTES;

/** Method and path of a route, such as `GET /admin/v1/customers/:id`. */
export type Endpoint = keyof Routes;

export type RequestOf<Each extends Endpoint> = SentRequest<Routes, Each>;
export type CheckedRequestOf<Each extends Endpoint> = CheckedRequest<Routes, Each>;
export type ReplyOf<Each extends Endpoint> = Reply<Routes, Each>;

/** The routes that reply with one page of a list. */
export type ListEndpoint = {
  [Each in Endpoint]: ReplyOf<Each> extends { next_cursor: string | null } ? Each : never;
}[Endpoint];
