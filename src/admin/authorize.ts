/**
 * Authenticates requests of the admin listener. The admin token allows everything, a JWT of the configured issuer what
 * its scopes allow. Unauthenticated requests get 401, whatever the path.
 *
 * The admin token can be guessed, so after many refusals from one address block, tokens from that block are checked at
 * a bounded rate. The valid token is not exempt: exempting it would mean checking every guess. A flood of guesses can
 * therefore block the valid token from the same address block, but from no other. JWTs cannot be guessed and are always
 * verified.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import type { RequestHandler } from 'express';
import { addressBlock } from '../base/address-block.ts';
import { systemScheduler } from '../base/clock.ts';
import { Throttle } from '../base/throttle.ts';
import { FailedAttempts } from '../listener/failed-attempts.ts';
import { type Problem, sendProblem } from '../problems/document.ts';
import type { AuditStore } from '../store/store.ts';
import type { AdminDependencies } from './dependencies.ts';
import { PacedChecks } from './paced-checks.ts';
import { type Actor, peerAddressOf, routeOf } from './request-context.ts';

type Access =
  | { readonly admitted: Actor }
  /** `reason` is for the log; without it, the refusal is neither counted nor logged. `actor`: of a valid JWT. */
  | { readonly problem: Problem; readonly reason?: string; readonly actor?: Actor['name'] };

const REFUSALS_PER_MINUTE = 30;
const MAX_LOGGED_ADDRESSES = 10_000;
/** An address block that keeps guessing gets a new audit entry after an hour. */
const AUDIT_AGAIN_AFTER_MS = 3_600_000;
/** At most one audit entry about guesses per interval, over all address blocks, so that they cannot fill the audit. */
const AUDIT_INTERVAL_MS = 60_000;

const CHALLENGE = 'Bearer realm="tollgate-admin"';
/** The scheme is case-insensitive (RFC 9110 §11.1). The token's characters are not restricted: operators choose it. */
const BEARER = /^bearer +(.+)$/i;
/** The compact serialization of RFC 7515 §7.1. */
const COMPACT_JWS = /^[\w-]+\.[\w-]+\.[\w-]+$/;

const READ_SCOPE = 'tollgate:read';
const WRITE_SCOPE = 'tollgate:write';

/**
 * Passes authenticated requests on, with an {@link Actor} for {@link actorOf}, and responds to all others. Must be
 * mounted after noteRequest.
 */
export function authorize({
  token,
  jwt,
  logger,
  clock,
  audit,
}: Pick<AdminDependencies, 'token' | 'jwt' | 'logger' | 'clock'> & {
  readonly audit: Pick<AuditStore, 'append'>;
}): RequestHandler {
  const accepted = acceptedInWords(Boolean(token), jwt !== undefined);
  const isAdminToken = token ? matches(token) : () => false;
  const refusals = new FailedAttempts(clock, REFUSALS_PER_MINUTE);
  const warnings = new Throttle(clock, 60_000, MAX_LOGGED_ADDRESSES);
  const checks = new PacedChecks(systemScheduler);
  const auditedBlocks = new Throttle(clock, AUDIT_AGAIN_AFTER_MS, MAX_LOGGED_ADDRESSES);
  const audits = new Throttle(clock, AUDIT_INTERVAL_MS, 1);

  async function authenticate(client: string, authorization: string | undefined, mustWrite: boolean): Promise<Access> {
    if (!token && !jwt) {
      const detail = 'No credentials are accepted: set admin.token or admin.jwt in the configuration file.';
      return { reason: 'nothing_configured', problem: unauthorized(detail) };
    }
    const presented = BEARER.exec(authorization ?? '')?.[1];
    if (presented === undefined) {
      return { reason: 'missing', problem: unauthorized(`Send ${accepted} as "Authorization: Bearer <token>".`) };
    }
    const verdict = jwt && COMPACT_JWS.test(presented) ? await jwt.verify(presented) : undefined;
    if (verdict?.outcome === 'valid') {
      const name = `jwt:${verdict.subject}` as const;
      const mayWrite = verdict.scopes.has(WRITE_SCOPE);
      if (mayWrite || (!mustWrite && verdict.scopes.has(READ_SCOPE))) return { admitted: { name, mayWrite } };
      const problem = insufficientScope(mustWrite ? WRITE_SCOPE : READ_SCOPE);
      return { reason: 'jwt_scope', actor: name, problem };
    }
    const retrySeconds = refusals.retrySeconds(client);
    if (retrySeconds !== undefined && !(await checks.waitForTurn(addressBlock(client)))) {
      return { problem: tooManyFailures(retrySeconds) };
    }
    if (isAdminToken(presented)) return { admitted: { name: 'token', mayWrite: true } };
    if (verdict === undefined) return { reason: 'wrong_token', problem: invalidToken(`This is not ${accepted}.`) };
    if (verdict.outcome === 'unverifiable') return { problem: ISSUER_UNAVAILABLE };
    return { reason: `jwt_${verdict.reason}`, problem: invalidToken(verdict.detail) };
  }

  return async (req, res, next) => {
    const client = peerAddressOf(res);
    const mustWrite = req.method !== 'GET' && req.method !== 'HEAD';
    const access = await authenticate(client, req.headers.authorization, mustWrite);
    if ('admitted' in access) {
      res.locals.actor = access.admitted;
      return next();
    }
    const { problem, reason, actor } = access;
    if (reason === undefined) return void sendProblem(res, problem);
    const sender = actor === undefined ? { client } : { client, actor };
    // Refusals of a known actor count for the actor, not for other clients at its address.
    const countedId = actor ?? addressBlock(client);
    const retrySeconds = refusals.count(countedId);
    if (retrySeconds === undefined) {
      const requestId = sendProblem(res, problem);
      const facts = { ...sender, reason, method: req.method, route: routeOf(res), request_id: requestId };
      logger.warn(facts, 'admin access refused');
      return;
    }
    sendProblem(res, tooManyFailures(retrySeconds));
    if (!warnings.isDue(countedId)) return;
    logger.warn(sender, 'admin access refused too often: further refusals are not logged one by one');
    auditGuesser(client, actor);
  };

  function auditGuesser(client: string, actor: string = 'unknown'): void {
    if (!auditedBlocks.isDue(addressBlock(client)) || !audits.isDue('all')) return;
    const at = new Date(clock.nowMs()).toISOString();
    audit
      .append({ at, actor, from: client, action: 'access.refused' })
      .catch((error: unknown) => logger.error({ err: error }, 'refused access cannot be written to the audit'));
  }
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
function unauthorized(detail: string): Problem {
  return { code: 'unauthorized', detail, headers: ['WWW-Authenticate', CHALLENGE] };
}

function invalidToken(detail: string): Problem {
  return { code: 'unauthorized', detail, headers: ['WWW-Authenticate', `${CHALLENGE}, error="invalid_token"`] };
}

function insufficientScope(scope: string): Problem {
  return {
    code: 'forbidden',
    detail: `The JWT lacks the scope ${scope}.`,
    headers: ['WWW-Authenticate', `${CHALLENGE}, error="insufficient_scope", scope="${scope}"`],
  };
}

function tooManyFailures(retrySeconds: number): Problem {
  return {
    code: 'too_many_failures',
    detail: `More than ${REFUSALS_PER_MINUTE} requests from your address were refused within a minute. Tokens from your address are checked at a limited rate for now.`,
    headers: ['Retry-After', String(retrySeconds)],
  };
}

const ISSUER_UNAVAILABLE: Problem = {
  code: 'issuer_unavailable',
  detail: "The keys of the JWT's issuer cannot be loaded, so the JWT cannot be verified.",
  headers: ['Retry-After', '10'],
};
