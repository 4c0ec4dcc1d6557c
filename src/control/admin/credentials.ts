/**
 * Checks the credentials of a request of the admin listener: the admin token, a JWT of the configured issuer, or the
 * session cookie that the console got for one of these. The admin token allows everything, a JWT what its scopes allow.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Problem } from '../../http/problems/document.ts';
import { BoundCookie, bindingOf, type CookieValue } from '../../pages/bound-cookie.ts';
import type { Actor } from '../frame/response-locals.ts';
import type { AdminDependencies } from './dependencies.ts';
import type { JwtVerdict } from './jwt.ts';
import { SessionSeal } from './session-seal.ts';

export type Credentials =
  | { readonly kind: 'bearer'; readonly token: string }
  | { readonly kind: 'cookie'; readonly cookies: readonly CookieValue[]; readonly binding: string }
  | { readonly kind: 'none' };

type Access =
  | { readonly admitted: Actor }
  /** `reason` is for the log; without it, the refusal is not logged. `actor`: of valid credentials. */
  | RefusedAccess;

export interface RefusedAccess {
  readonly problem: Problem;
  readonly reason?: string;
  readonly actor?: Actor['name'];
  /** Credentials were presented, and are not valid. */
  readonly isFailedAttempt?: true;
}

const CHALLENGE = 'Bearer realm="tollgate-admin"';
/** The scheme is case-insensitive (RFC 9110 §11.1). The token's characters are not restricted: operators choose it. */
const BEARER = /^bearer +(.+)$/i;
/** The compact serialization of RFC 7515 §7.1. */
const COMPACT_JWS = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/** Of the console. */
export const SESSION_COOKIE = new BoundCookie('tollgate_session');

const READ_SCOPE = 'tollgate:read';
const WRITE_SCOPE = 'tollgate:write';

/**
 * Returns the credentials of a request. A bearer token takes precedence, because a single sign-on proxy adds one. Cookies
 * without a binding are no credentials: every page on another port of the host sends them.
 */
export function credentialsOf(headers: IncomingHttpHeaders): Credentials {
  const token = BEARER.exec(headers.authorization ?? '')?.[1];
  if (token !== undefined) return { kind: 'bearer', token };
  const cookies = SESSION_COOKIE.of(headers);
  const binding = bindingOf(headers);
  return cookies.length === 0 || binding === undefined ? { kind: 'none' } : { kind: 'cookie', cookies, binding };
}

export interface CredentialChecker {
  /** Resolves to the cookie value of a session. `bearer`: the admin token or JWT that the actor logs in with. */
  sealSession(actor: Actor & { readonly expiresAtMs: number }, bearer: string, binding: string): Promise<string>;
  check(credentials: Credentials, mustWrite: boolean): Promise<Access>;
}

export function createCredentialChecker({
  token,
  jwt,
  clock,
}: Pick<AdminDependencies, 'token' | 'jwt' | 'clock'>): CredentialChecker {
  const accepted = [token && 'the admin token', jwt && 'a JWT'].filter(Boolean).join(' or ');
  const isAdminToken = token ? matches(token) : () => false;
  const seal = new SessionSeal(token ?? '', clock);

  async function checkBearer(presented: string, mustWrite: boolean): Promise<Access> {
    if (isAdminToken(presented)) return { admitted: { name: 'token', mayWrite: true } };
    if (jwt && COMPACT_JWS.test(presented)) return checkVerdict(await jwt.verify(presented), mustWrite);
    return { reason: 'wrong_token', isFailedAttempt: true, problem: invalidToken(`This is not ${accepted}.`) };
  }

  async function checkCookies(cookies: readonly CookieValue[], binding: string, mustWrite: boolean): Promise<Access> {
    const session = await seal.openFirst(cookies, binding);
    if (session !== undefined && jwt && 'jwt' in session) return checkVerdict(await jwt.verify(session.jwt), mustWrite);
    if (session === undefined || 'jwt' in session || (session.actor.startsWith('jwt:') && jwt === undefined)) {
      const problem = unauthorized('The session has ended. Log in again.');
      return { reason: 'session', isFailedAttempt: true, problem };
    }
    const { mayWrite, expiresAtMs } = session;
    const name = session.actor as Actor['name'];
    if (mustWrite && !mayWrite) return lacksScope(WRITE_SCOPE, name);
    return { admitted: { name, mayWrite, expiresAtMs } };
  }

  return {
    sealSession: ({ name, mayWrite, expiresAtMs }, bearer, binding) =>
      seal.seal(token ? { actor: name, mayWrite, expiresAtMs } : { jwt: bearer, expiresAtMs }, binding),
    async check(credentials, mustWrite) {
      if (!token && !jwt) {
        const detail = 'No credentials are accepted: set admin.token or admin.jwt in the configuration file.';
        return { reason: 'nothing_configured', problem: unauthorized(detail) };
      }
      switch (credentials.kind) {
        case 'bearer':
          return checkBearer(credentials.token, mustWrite);
        case 'cookie':
          return checkCookies(credentials.cookies, credentials.binding, mustWrite);
        case 'none':
          return { reason: 'missing', problem: unauthorized(`Send ${accepted} as "Authorization: Bearer <token>".`) };
      }
    },
  };
}

function checkVerdict(verdict: JwtVerdict, mustWrite: boolean): Access {
  if (verdict.outcome === 'unverifiable') return { problem: ISSUER_UNAVAILABLE };
  if (verdict.outcome === 'invalid') {
    return { reason: `jwt_${verdict.reason}`, isFailedAttempt: true, problem: invalidToken(verdict.detail) };
  }
  const { subject, scopes, expiresAtMs } = verdict;
  const name = `jwt:${subject}` as const;
  const mayWrite = scopes.has(WRITE_SCOPE);
  if (mayWrite || (!mustWrite && scopes.has(READ_SCOPE))) return { admitted: { name, mayWrite, expiresAtMs } };
  return lacksScope(mustWrite ? WRITE_SCOPE : READ_SCOPE, name);
}

/** Compares digests of fixed length in constant time, so that timing reveals neither the token nor its length. */
function matches(token: string): (presented: string) => boolean {
  const digest = (text: string) => hash('sha256', text, 'buffer');
  const expected = digest(token);
  return (presented) => timingSafeEqual(digest(presented), expected);
}

/** Without credentials, the challenge has no error attribute (RFC 6750 §3.1). */
export function unauthorized(detail: string): Problem {
  return { code: 'unauthorized', detail, headers: ['WWW-Authenticate', CHALLENGE] };
}

function invalidToken(detail: string): Problem {
  return { code: 'unauthorized', detail, headers: ['WWW-Authenticate', `${CHALLENGE}, error="invalid_token"`] };
}

function lacksScope(scope: string, actor: Actor['name']): RefusedAccess {
  const problem: Problem = {
    code: 'forbidden',
    detail: `The JWT lacks the scope ${scope}.`,
    headers: ['WWW-Authenticate', `${CHALLENGE}, error="insufficient_scope", scope="${scope}"`],
  };
  return { reason: 'jwt_scope', isFailedAttempt: true, actor, problem };
}

const ISSUER_UNAVAILABLE: Problem = {
  code: 'issuer_unavailable',
  detail: "The keys of the JWT's issuer cannot be loaded, so the JWT cannot be verified.",
  headers: ['Retry-After', '10'],
};
