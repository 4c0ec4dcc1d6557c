/**
 * Checks the credentials of a request of the admin listener: the admin token, a JWT of the configured issuer, or the
 * session cookie that the console got for one of these. The admin token allows everything, a JWT what its scopes allow.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { type SessionCookie, SessionSeal, sessionCookieOf } from '../console/session.ts';
import type { Problem } from '../problems/document.ts';
import type { AdminDependencies } from './dependencies.ts';
import type { JwtVerdict } from './jwt.ts';
import type { Actor } from './request-context.ts';

export type Credentials =
  | { readonly kind: 'bearer'; readonly token: string }
  | { readonly kind: 'cookie'; readonly cookie: SessionCookie }
  | { readonly kind: 'none' };

export type Access =
  | { readonly admitted: Actor }
  /** `reason` is for the log; without it, the refusal is neither counted nor logged. `actor`: of valid credentials. */
  | RefusedAccess;

export interface RefusedAccess {
  readonly problem: Problem;
  readonly reason?: string;
  readonly actor?: Actor['name'];
}

const CHALLENGE = 'Bearer realm="tollgate-admin"';
/** The scheme is case-insensitive (RFC 9110 §11.1). The token's characters are not restricted: operators choose it. */
const BEARER = /^bearer +(.+)$/i;
/** The compact serialization of RFC 7515 §7.1. */
const COMPACT_JWS = /^[\w-]+\.[\w-]+\.[\w-]+$/;

const READ_SCOPE = 'tollgate:read';
const WRITE_SCOPE = 'tollgate:write';

/** Returns the credentials of a request. A bearer token takes precedence, because a single sign-on proxy adds one. */
export function credentialsOf(headers: IncomingHttpHeaders): Credentials {
  const token = BEARER.exec(headers.authorization ?? '')?.[1];
  if (token !== undefined) return { kind: 'bearer', token };
  const cookie = sessionCookieOf(headers);
  return cookie === undefined ? { kind: 'none' } : { kind: 'cookie', cookie };
}

export interface CredentialChecker {
  /** Undefined without an admin token. */
  readonly seal: SessionSeal | undefined;
  /**
   * `slowDown` is called before a possible admin token is compared. It resolves to a problem if that must not be done now.
   */
  check(credentials: Credentials, mustWrite: boolean, slowDown: () => Promise<Problem | undefined>): Promise<Access>;
}

export function createCredentialChecker({
  token,
  jwt,
  clock,
}: Pick<AdminDependencies, 'token' | 'jwt' | 'clock'>): CredentialChecker {
  const accepted = acceptedInWords(Boolean(token), jwt !== undefined);
  const isAdminToken = token ? matches(token) : () => false;
  const seal = token ? new SessionSeal(token, clock) : undefined;

  async function checkBearer(
    presented: string,
    mustWrite: boolean,
    slowDown: () => Promise<Problem | undefined>,
  ): Promise<Access> {
    const verdict = jwt && COMPACT_JWS.test(presented) ? await jwt.verify(presented) : undefined;
    if (verdict?.outcome === 'valid') return checkScope(verdict, mustWrite);
    const tooMany = await slowDown();
    if (tooMany !== undefined) return { problem: tooMany };
    if (isAdminToken(presented)) return { admitted: { name: 'token', mayWrite: true } };
    if (verdict === undefined) return { reason: 'wrong_token', problem: invalidToken(`This is not ${accepted}.`) };
    return refuseVerdict(verdict);
  }

  async function checkCookie(value: string, mustWrite: boolean): Promise<Access> {
    if (jwt && COMPACT_JWS.test(value)) {
      const verdict = await jwt.verify(value);
      return verdict.outcome === 'valid' ? checkScope(verdict, mustWrite) : refuseVerdict(verdict);
    }
    const session = await seal?.open(value);
    const name = session?.actor as Actor['name'] | undefined;
    if (session === undefined || name === undefined || (name !== 'token' && jwt === undefined)) {
      return { reason: 'session', problem: unauthorized('The session has ended. Log in again.') };
    }
    const { mayWrite, expiresAtMs } = session;
    if (mustWrite && !mayWrite) return lacksScope(WRITE_SCOPE, name);
    return { admitted: { name, mayWrite, expiresAtMs } };
  }

  return {
    seal,
    async check(credentials, mustWrite, slowDown) {
      if (!token && !jwt) {
        const detail = 'No credentials are accepted: set admin.token or admin.jwt in the configuration file.';
        return { reason: 'nothing_configured', problem: unauthorized(detail) };
      }
      switch (credentials.kind) {
        case 'bearer':
          return checkBearer(credentials.token, mustWrite, slowDown);
        case 'cookie':
          return checkCookie(credentials.cookie.value, mustWrite);
        case 'none':
          return { reason: 'missing', problem: unauthorized(`Send ${accepted} as "Authorization: Bearer <token>".`) };
      }
    },
  };
}

function checkScope(jwt: JwtVerdict & { outcome: 'valid' }, mustWrite: boolean): Access {
  const { subject, scopes, expiresAtMs } = jwt;
  const name = `jwt:${subject}` as const;
  const mayWrite = scopes.has(WRITE_SCOPE);
  if (mayWrite || (!mustWrite && scopes.has(READ_SCOPE))) return { admitted: { name, mayWrite, expiresAtMs } };
  return lacksScope(mustWrite ? WRITE_SCOPE : READ_SCOPE, name);
}

function refuseVerdict(verdict: Exclude<JwtVerdict, { outcome: 'valid' }>): Access {
  if (verdict.outcome === 'unverifiable') return { problem: ISSUER_UNAVAILABLE };
  return { reason: `jwt_${verdict.reason}`, problem: invalidToken(verdict.detail) };
}

/**
 * Compares digests of fixed length in constant time, so that timing reveals neither the token nor its length.
 */
function matches(token: string): (presented: string) => boolean {
  const expected = digest(token);
  return (presented) => timingSafeEqual(digest(presented), expected);
}

function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}

function acceptedInWords(token: boolean, jwt: boolean): string {
  if (token && jwt) return 'the admin token or a JWT';
  return token ? 'the admin token' : 'a JWT';
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
  return { reason: 'jwt_scope', actor, problem };
}

const ISSUER_UNAVAILABLE: Problem = {
  code: 'issuer_unavailable',
  detail: "The keys of the JWT's issuer cannot be loaded, so the JWT cannot be verified.",
  headers: ['Retry-After', '10'],
};
