/** The generated sections of docs/openapi/portal.yaml, with the texts of its operations and refusals. */
import * as queries from '../src/api/admin/queries.ts';
import * as requests from '../src/api/admin/requests.ts';
import * as responses from '../src/api/admin/responses.ts';
import * as documents from '../src/api/portal/portal-documents.ts';
import { PAGE_LIMIT, PORTAL_ROUTES, type PortalEndpoint } from '../src/api/portal/portal-routes.ts';
import { type Operation, openApiSections, type Refusal } from './openapi-sections.ts';

const REFUSALS = {
  MalformedJson: { codes: ['malformed_json'], description: 'The body is not valid JSON in UTF-8.' },
  Unauthorized: {
    codes: ['unauthorized'],
    description:
      'No session and no token, or it has ended; or the link was used before, or is older than five minutes.',
  },
  ForeignPage: { codes: ['forbidden'], description: 'The request comes from a page of another origin.' },
  Forbidden: {
    codes: ['insufficient_scope', 'customer_suspended', 'quota_not_configured', 'forbidden'],
    description:
      'The session or token lacks the scope; or a suspended customer tries to change something; or the customer has no limit; or the request has a cookie, but comes from a page of another origin.',
  },
  NotFound: { codes: ['not_found'], description: 'The customer has no such key, or the path does not exist.' },
  MethodNotAllowed: {
    codes: ['method_not_allowed'],
    description: 'The path does not support this method. Applies to every path of this file.',
  },
  MisdirectedRequest: {
    codes: ['misdirected_request'],
    description: '`Host` is not that of `portal.public_url`. Applies to every path of this file.',
  },
  Conflict: {
    codes: ['conflict'],
    description: 'The state of the key rules out the change, or the customer has too many keys; `detail` says which.',
  },
  BodyTooLarge: { codes: ['body_too_large'], description: 'The body is larger than 64 KiB.' },
  UnsupportedMediaType: {
    codes: ['unsupported_media_type'],
    description: 'The body, or a change with the cookie, is not declared as JSON; or it is compressed or not in UTF-8.',
  },
  Unprocessable: {
    codes: ['unprocessable'],
    description:
      'A member or parameter is missing, unknown or of the wrong type; or a restriction of a key would be lifted; or a scope is unknown; or there is no usage history.',
  },
  TooMany: {
    codes: ['too_many_writes', 'too_many_failures'],
    description:
      'The customer made 60 changes within the last hour; or the secret is invalid, and so were more than 30 others from this address within a minute.',
  },
  TooManyReads: {
    codes: ['too_many_reads', 'too_many_failures'],
    description:
      'The customer read its usage or keys 50 times within the last second, at this instance; or the secret is invalid, and so were more than 30 others from this address within a minute.',
  },
  TooManyFailures: {
    codes: ['too_many_failures'],
    description: 'The secret is invalid, and so were more than 30 others from this address within a minute.',
  },
  InternalError: { codes: ['internal_error'], description: 'A bug in the gateway. The log has the `request_id`.' },
  Unavailable: {
    codes: ['store_unavailable'],
    description: 'The store does not reply, and a change may or may not have been made.',
  },
} as const satisfies Readonly<Record<string, Refusal>>;

type RefusalName = keyof typeof REFUSALS;

const OPERATIONS: Readonly<Record<PortalEndpoint, Operation<RefusalName>>> = {
  'GET /portal/settings': {
    operationId: 'getSettings',
    tag: 'session',
    summary: 'What pages show without a session',
    success: 'The settings.',
  },
  'POST /portal/session': {
    operationId: 'openSession',
    tag: 'session',
    summary: 'Open a session with the code of a link, once',
    description: 'For the page at `/portal`. A request from a page of another origin is refused.',
    success: 'The session, and its cookie.',
    headers: ['SetCookie'],
    refusals: ['ForeignPage', 'Unauthorized', 'TooManyFailures', 'Unavailable', 'Unprocessable'],
  },
  'GET /portal/session': {
    operationId: 'getSession',
    tag: 'session',
    summary: 'Whose session or token this is, and what it allows',
    success: 'The session.',
    refusals: ['ForeignPage'],
  },
  'DELETE /portal/session': {
    operationId: 'endSession',
    tag: 'session',
    summary: 'End the session or token of this request',
    success: 'Ended, and the cookie is deleted.',
    headers: ['SetCookie'],
    refusals: ['ForeignPage', 'UnsupportedMediaType'],
  },
  'GET /portal/v1/usage': {
    operationId: 'getUsage',
    tag: 'usage',
    summary: 'Plan, limits, and usage of the last hour and of the present day or month',
    success: 'The usage as counted in the store.',
  },
  'GET /portal/v1/usage/history': {
    operationId: 'getUsageHistory',
    tag: 'usage',
    summary: 'Requests and refusals, by hour or day',
    description: 'Without `from`: the last 24 hours or 35 days. At most 1,000 points.',
    success: 'One point for each hour or day.',
  },
  'GET /portal/v1/routes/deprecated': {
    operationId: 'listDeprecatedCalls',
    tag: 'usage',
    summary: 'Your calls of deprecated paths in the last 35 days',
    description: 'The latest first. Up to 10 seconds late, and approximate. Without a usage history, empty.',
    success: 'One item for each deprecated path that was called.',
  },
  'GET /portal/v1/scopes': {
    operationId: 'listScopes',
    tag: 'keys',
    summary: 'The scopes that keys may be restricted to, with what they allow',
    success: 'One item for each scope. Routes without a scope are open to every key.',
  },
  'GET /portal/v1/keys': {
    operationId: 'listKeys',
    tag: 'keys',
    summary: 'The keys, without their values',
    description: 'Oldest first within a page. A page other than the last may have fewer keys than `limit`.',
    success: 'A page of the list.',
  },
  'POST /portal/v1/keys': {
    operationId: 'createKey',
    tag: 'keys',
    summary: 'Create a key',
    description:
      '409 if `max_keys` keys are in use. 422 if the new key would be less restricted than every key in use or, without one, than the key that ended last; or if no route has one of its scopes: `detail` names the scopes that there are.',
    success: 'Created. Only this response has `key`.',
    refusals: ['Conflict'],
  },
  'PATCH /portal/v1/keys/:keyId': {
    operationId: 'updateKey',
    tag: 'keys',
    summary: 'Rename, limit or restrict a key',
    description:
      'The limit may be raised or removed, whoever set it: that of the account bounds it. 422 if the change lifts a restriction of the key, or if no route has one of its new scopes; `detail` says what is allowed.',
    success: 'The key.',
  },
  'POST /portal/v1/keys/:keyId/rotate': {
    operationId: 'rotateKey',
    tag: 'keys',
    summary: 'Create a key that replaces this one after a grace period',
    description:
      'The old key stays valid until the grace period ends, but never beyond its own expiry. 409 if the old key is revoked, expired or already replaced, or twice `max_keys` keys are valid.',
    success: 'The new key, with the same name, restrictions and limit, without expiry. Only this response has `key`.',
    refusals: ['Conflict'],
  },
  'DELETE /portal/v1/keys/:keyId': {
    operationId: 'revokeKey',
    tag: 'keys',
    summary: 'Revoke a key at once; this cannot be undone',
    success: 'Revoked, by this call or an earlier one.',
  },
};

export const portalSections = () =>
  openApiSections<RefusalName>({
    routes: PORTAL_ROUTES,
    operations: OPERATIONS,
    refusals: REFUSALS,
    schemas: (bodyOf) => ({
      Problem: responses.PROBLEM,
      CustomerId: responses.CUSTOMER_ID,
      DisplayName: requests.DISPLAY_NAME,
      FutureTime: requests.FUTURE_TIME,
      Time: responses.TIME,
      RecordTime: responses.RECORD_TIME,
      NextCursor: responses.NEXT_CURSOR,
      Settings: documents.PORTAL_SETTINGS,
      Code: bodyOf('POST /portal/session'),
      OpenedSession: documents.OPENED_SESSION,
      Session: documents.PORTAL_SESSION,
      Usage: documents.PORTAL_USAGE,
      UsageHistory: responses.USAGE_HISTORY,
      DeprecatedCalls: responses.OWN_DEPRECATED_CALLS,
      Scopes: documents.SCOPES,
      Key: documents.PORTAL_KEY,
      KeyPage: documents.PORTAL_KEY_PAGE,
      KeyCreation: bodyOf('POST /portal/v1/keys'),
      KeyChange: bodyOf('PATCH /portal/v1/keys/:keyId'),
      Rotation: requests.ROTATION,
      NewKey: documents.PORTAL_NEW_KEY,
      RotatedKey: documents.PORTAL_ROTATED_KEY,
    }),
    parameters: { From: queries.FROM, To: queries.TO, Limit: PAGE_LIMIT, Cursor: queries.CURSOR },
    pathParameters: { keys: 'KeyId' },
    refusalsOf: (endpoint, { scope, query, body }) => [
      'InternalError',
      ...(endpoint === 'GET /portal/settings' ? [] : (['Unauthorized', 'TooManyFailures', 'Unavailable'] as const)),
      ...(scope === undefined ? [] : (['Forbidden'] as const)),
      ...(scope === undefined
        ? []
        : endpoint.startsWith('GET ')
          ? (['TooManyReads'] as const)
          : (['UnsupportedMediaType', 'TooMany'] as const)),
      ...(endpoint.includes(':') ? (['NotFound'] as const) : []),
      ...(body === undefined
        ? []
        : (['MalformedJson', 'BodyTooLarge', 'UnsupportedMediaType', 'Unprocessable'] as const)),
      ...(query === undefined ? [] : (['Unprocessable'] as const)),
    ],
  });
