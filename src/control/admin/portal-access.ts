/** Makes links to the portal and tokens for it, and ends them with what they opened. */
import type { CheckedRequestOf } from '../../api/admin/routes.ts';
import { type PortalSession, portalSecretHash } from '../../store/portal-sessions.ts';
import { isoTime } from '../frame/document-of.ts';
import { noSuchCustomer, possibleCustomerId, Refusal, requireCustomer } from '../frame/refusal.ts';
import type { AdminContext, Handlers } from './dependencies.ts';

const SECRET_BYTES = 32;
const ID_BYTES = 12;

type Wanted = CheckedRequestOf<'POST /admin/v1/customers/:id/portal-tokens'>;

/** Returns a code, cookie or token. `randomBytes`: cryptographically secure. */
export function newPortalSecret(randomBytes: (size: number) => Buffer): string {
  return randomBytes(SECRET_BYTES).toString('base64url');
}

export function portalAccessHandlers({
  records,
  portal,
  portalSessions,
  randomBytes,
  clock,
  recordChange,
}: AdminContext) {
  /** `prefix`: of the id. */
  async function add(kind: 'code' | 'token', prefix: string, { id, body }: Wanted) {
    const { id: customer, createdAt = '' } = await requireCustomer(records, id);
    const { scopes, user, returnUrl, ttlSeconds } = body;
    const secret = newPortalSecret(randomBytes);
    const ttlMs = ttlSeconds * 1000;
    const session: PortalSession = {
      id: prefix + randomBytes(ID_BYTES).toString('base64url'),
      customer,
      customerCreatedAt: createdAt,
      scopes: [...new Set(scopes)],
      user,
      returnUrl,
      expiresAtMs: clock.nowMs() + ttlMs,
    };
    if (!(await portalSessions.add(kind, portalSecretHash(secret), session, ttlMs))) noSuchCustomer();
    const expiresAt = isoTime(session.expiresAtMs);
    const details = { id: session.id, scopes: session.scopes.join(' '), user, expiresAt };
    return { secret, customer, details, reply: { id: session.id, expiresAt } };
  }

  return {
    async 'POST /admin/v1/customers/:id/portal-sessions'(request, res) {
      const { publicUrl } = portal ?? refuse();
      const { secret, customer, details, reply } = await add('code', 'ps_', request);
      await recordChange(res, { action: 'portal_session.create', customer, details });
      return { ...reply, url: `${publicUrl}/portal#code=${secret}` };
    },
    async 'POST /admin/v1/customers/:id/portal-tokens'(request, res) {
      if (portal === undefined) refuse();
      const { secret, customer, details, reply } = await add('token', 'pt_', request);
      await recordChange(res, { action: 'portal_token.create', customer, details });
      return { ...reply, token: secret };
    },
    async 'DELETE /admin/v1/customers/:id/portal-sessions'({ id }, res) {
      const customer = possibleCustomerId(id);
      await portalSessions.endAll(customer);
      await requireCustomer(records, customer);
      await recordChange(res, { action: 'portal_session.end', customer });
    },
  } satisfies Partial<Handlers>;
}

function refuse(): never {
  throw new Refusal('unprocessable', 'There is no portal: the configuration has no section portal.');
}
