/**
 * The routes of the portal. They call the handlers of the admin API for the customer of the session alone, so that keys are
 * created, rotated, changed and revoked, and changes recorded, in one way.
 */
import type { Response } from 'express';
import { PORTAL_SCOPES } from '../../api/admin/allowed-values.ts';
import type { PORTAL_ROUTES } from '../../api/portal/portal-routes.ts';
import { keyState } from '../../customers/keys/key-state.ts';
import { limitsOf } from '../../customers/quota/effective-limit.ts';
import { type BoundCookie, createBinding } from '../../pages/bound-cookie.ts';
import { type PortalSession, portalSecretHash } from '../../store/portal-sessions.ts';
import type { CustomerRecord, KeyRecord } from '../../store/record-fields.ts';
import { issueKey } from '../admin/create-key.ts';
import { keyHandlers } from '../admin/keys.ts';
import { newPortalSecret } from '../admin/portal-access.ts';
import { rotationHandlers } from '../admin/rotation.ts';
import { usageHistoryHandlers } from '../admin/usage-history.ts';
import { isoTime } from '../frame/document-of.ts';
import { noSuchCustomer, noSuchKey, Refusal, requireKey } from '../frame/refusal.ts';
import { factsOf } from '../frame/response-locals.ts';
import type { HandlersOf } from '../frame/routes.ts';
import { boundsOfNewKey, endOfNewKey, wideningProblem } from './key-bounds.ts';
import { LOGO_PATH } from './own-files.ts';
import type { PortalContext } from './portal-context.ts';
import { exampleUrl, routesByScope, unknownScopeProblem } from './route-scopes.ts';
import { actorOf, cookieHash, type SessionAccess, visitOf } from './session-access.ts';

const WRITES_PER_HOUR = 60;
const WRITE_ID_BYTES = 12;
/** Revoked and expired keys included. Reading more of them for each new key would take too long. */
const MAX_STORED_KEYS = 1000;

export function portalHandlers(
  context: PortalContext,
  cookie: BoundCookie,
  access: SessionAccess,
): HandlersOf<typeof PORTAL_ROUTES> {
  const { portal, portalSessions, records, clock, randomBytes, recordChange } = context;
  const keys = keyHandlers(context, (current, change) => {
    return wideningProblem(current, change) ?? unknownScopeProblem(context.routes, change.scopes, current.scopes);
  });
  const example = (scopes?: readonly string[]) => exampleUrl(portal.apiUrl, context.routes, scopes);
  const { 'POST /admin/v1/keys/:keyId/rotate': rotate } = rotationHandlers(context, { keepsEnd: true });
  const history = usageHistoryHandlers(context)['GET /admin/v1/customers/:id/usage/history'];

  return {
    'GET /portal/settings': () => ({
      ...portal,
      logoUrl: portal.logo && LOGO_PATH,
      keyHeader: context.keyHeader,
    }),
    async 'POST /portal/session'({ body: { code } }, res) {
      const { headers } = res.req;
      const [value, binding] = [newPortalSecret(randomBytes), createBinding(randomBytes)];
      const session = await portalSessions.open(portalSecretHash(code), cookieHash(value, binding));
      const customer = session && (await access.customerOf(session));
      if (!customer) {
        throw access.refusal(res, 'This link was used before, or is older than five minutes. Get a new one.', 'code');
      }
      factsOf(res).actor = actorOf({ customer, session });
      await recordChange(res, { action: 'portal_session.open', customer: customer.id, details: { id: session.id } });
      const header = cookie.header(headers, value, session.expiresAtMs - clock.nowMs());
      if (header !== undefined) res.setHeader('Set-Cookie', header);
      return { ...describe(session, customer), binding };
    },
    'GET /portal/session': (_request, res) => {
      const { session, customer } = visitOf(res);
      return describe(session, customer);
    },
    async 'DELETE /portal/session'(_request, res) {
      await portalSessions.end(visitOf(res).sha256);
      res.setHeader('Set-Cookie', cookie.deletingHeaders(res.req.headers));
    },
    async 'GET /portal/v1/usage'(_request, res) {
      const { customer } = visitOf(res);
      const limit = context.effectiveLimit(customer);
      if (!limit.found) throw new Refusal('quota_not_configured', 'Your account has no limit. Contact support.');
      const plan = context.currentPlan(customer.plan) ?? customer.plan;
      const usage = await context.usage(customer.id, limitsOf(limit, customer, plan));
      return { ...usage, plan, limitUntil: isoTime(limit.until?.atMs), limitThen: limit.until?.then };
    },
    'GET /portal/v1/usage/history': ({ query }, res) => history({ id: visitOf(res).customer.id, query }),
    async 'GET /portal/v1/routes/deprecated'(_request, res) {
      const { customer } = visitOf(res);
      const ending = context.routes.filter(({ deprecatedAt, sunsetAt }) => deprecatedAt ?? sunsetAt);
      const routes = [...new Set(ending.map(({ path }) => path))];
      const calls = routes.length === 0 ? [] : await context.history?.deprecated({ customer: customer.id, routes });
      return {
        items: (calls ?? []).map((each) => {
          const route = ending.find(({ path }) => path === each.route);
          return { ...route, ...each, lastAt: isoTime(each.lastAtMs) };
        }),
      };
    },
    'GET /portal/v1/scopes': () => ({
      items: [...routesByScope(context.routes)].map(([scope, routes]) => ({ scope, routes })),
    }),
    'GET /portal/v1/keys': ({ query }, res) =>
      keys['GET /admin/v1/customers/:id/keys']({ id: visitOf(res).customer.id, query }),
    async 'POST /portal/v1/keys'({ body }, res) {
      const { customer } = visitOf(res);
      const unknown = unknownScopeProblem(context.routes, body.scopes);
      if (unknown) throw unknown;
      await countWrite(res);
      const stored = await requireRoom(customer.id, portal.maxKeys - 1, ['live']);
      const nowMs = clock.nowMs();
      const details = { ...body, expiresAt: endOfNewKey(boundsOfNewKey(stored, nowMs), body, nowMs) };
      const { key, record } = (await issueKey(context, { ...details, customer: customer.id })) ?? noSuchCustomer();
      // Another one may have been created at the same time.
      await requireRoom(customer.id, portal.maxKeys, ['live']).catch(async (error: unknown) => {
        await records.discardKey(record.id);
        throw error;
      });
      await recordChange(res, { action: 'key.create', customer: customer.id, keyId: record.id, details });
      return { key, ...record, exampleUrl: example(record.scopes) };
    },
    async 'PATCH /portal/v1/keys/:keyId'({ keyId, body }, res) {
      await ownKeyToChange(keyId, res);
      return keys['PATCH /admin/v1/keys/:keyId']({ keyId, body }, res);
    },
    async 'POST /portal/v1/keys/:keyId/rotate'({ keyId, body }, res) {
      const { customer, scopes } = await ownKeyToChange(keyId, res);
      // Otherwise rotations with a long grace would make any number of keys.
      await requireRoom(customer, 2 * portal.maxKeys - 1, ['live', 'rotated']);
      const rotated = await rotate({ keyId, body }, res);
      // Names a path of the admin API.
      res.removeHeader('Location');
      return { ...rotated, exampleUrl: example(scopes) };
    },
    async 'DELETE /portal/v1/keys/:keyId'({ keyId }, res) {
      await ownKeyToChange(keyId, res);
      return keys['DELETE /admin/v1/keys/:keyId']({ keyId }, res);
    },
  };

  /** Returns the key and counts the write. @throws Refusal `not_found`, the same for the key of another customer. */
  async function ownKeyToChange(keyId: string, res: Response): Promise<KeyRecord> {
    const key = await requireKey(records, keyId);
    if (key.customer !== visitOf(res).customer.id) noSuchKey();
    await countWrite(res);
    return key;
  }

  async function countWrite(res: Response): Promise<void> {
    const id = randomBytes(WRITE_ID_BYTES).toString('base64url');
    const waitMs = await portalSessions.countWrite(visitOf(res).customer.id, id, WRITES_PER_HOUR);
    if (waitMs === 0) return;
    const retryAfter = ['Retry-After', String(Math.ceil(waitMs / 1000))];
    throw new Refusal('too_many_writes', `More than ${WRITES_PER_HOUR} changes within an hour.`, {}, retryAfter);
  }

  /** Returns the stored keys. @throws Refusal `conflict` if the customer has more than `most` keys in these states. */
  async function requireRoom(customer: string, most: number, states: readonly string[]) {
    const stored: KeyRecord[] = [];
    let cursor: string | undefined;
    do {
      const page = await records.listCustomerKeys(customer, cursor, MAX_STORED_KEYS);
      stored.push(...page.items);
      cursor = page.next;
    } while (cursor !== undefined && stored.length < MAX_STORED_KEYS);
    const counted = stored.filter((key) => states.includes(keyState(key, clock.nowMs()))).length;
    if (counted > most) throw new Refusal('conflict', `You have ${counted} keys. Revoke one that you no longer use.`);
    if (cursor !== undefined) throw new Refusal('conflict', 'You have too many revoked keys. Contact support.');
    return stored;
  }
}

function describe(session: PortalSession, customer: CustomerRecord) {
  return {
    ...session,
    customer: customer.id,
    customerName: customer.name,
    suspended: customer.suspended,
    scopes: PORTAL_SCOPES.filter((scope) => session.scopes.includes(scope)),
    expiresAt: isoTime(session.expiresAtMs),
  };
}
