/**
 * The routes of the portal, each with its query, body and reply, and the scope that a session or token needs. The portal
 * listener takes its router from this table, and the pages their types. `npm run docs` generates the operations of
 * docs/openapi/portal.yaml from it.
 */
import { z } from 'zod';
import * as query from '../admin/queries.ts';
import { keyChange, keyGeneration, ROTATION } from '../admin/requests.ts';
import { OWN_DEPRECATED_CALLS, USAGE_HISTORY } from '../admin/responses.ts';
import type { RouteTable } from '../admin/route-table.ts';
import * as document from './portal-documents.ts';

const CODE = z.strictObject({
  code: z
    .string()
    .max(256, 'must be the code of a link to the portal')
    .transform((code) => code.replace(/^code=/, ''))
    .describe('The code in the fragment of a link, or the whole fragment.'),
});
/** Reading many keys at once would delay requests of the public listener. */
export const PAGE_LIMIT = query.pageLimit(200);

export const PORTAL_ROUTES = {
  'GET /portal/settings': { reply: document.PORTAL_SETTINGS },
  'POST /portal/session': { body: () => CODE, reply: document.OPENED_SESSION },
  'GET /portal/session': { reply: document.PORTAL_SESSION },
  'DELETE /portal/session': {},
  'GET /portal/v1/usage': { scope: 'usage:read', reply: document.PORTAL_USAGE },
  'GET /portal/v1/usage/history': {
    scope: 'usage:read',
    query: z.strictObject({ from: query.FROM, to: query.TO, step: query.STEP }),
    reply: USAGE_HISTORY,
  },
  'GET /portal/v1/routes/deprecated': { scope: 'usage:read', reply: OWN_DEPRECATED_CALLS },
  'GET /portal/v1/scopes': { scope: 'keys:write', reply: document.SCOPES },
  'GET /portal/v1/keys': {
    scope: 'keys:read',
    query: z.strictObject({ limit: PAGE_LIMIT, cursor: query.CURSOR }),
    reply: document.PORTAL_KEY_PAGE,
  },
  'POST /portal/v1/keys': {
    scope: 'keys:write',
    body: keyGeneration,
    status: 201,
    reply: document.PORTAL_NEW_KEY,
  },
  'PATCH /portal/v1/keys/:keyId': {
    scope: 'keys:write',
    body: (context) => keyChange(context).omit({ expires_at: true }).describe('Null unsets a member.'),
    reply: document.PORTAL_KEY,
  },
  'POST /portal/v1/keys/:keyId/rotate': {
    scope: 'keys:write',
    body: () => ROTATION,
    status: 201,
    reply: document.PORTAL_ROTATED_KEY,
  },
  'DELETE /portal/v1/keys/:keyId': { scope: 'keys:write' },
} as const satisfies RouteTable;

export type PortalEndpoint = keyof typeof PORTAL_ROUTES;
