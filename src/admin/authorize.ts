/**
 * Who may call the admin listener: the holder of the admin token, who may do everything, and of a JWT of the configured
 * issuer, who may do what its scopes say. Everybody else gets 401, whatever the path.
 *
 * What is presented is looked at first and counted only when it was refused: so nobody behind an address with many
 * refusals is kept out who has the right to come in. It spares the log, and tells whatever sends them to stop.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import type { RequestHandler } from 'express';
import { addressBlock } from '../address-block.ts';
import type { Clock } from '../clock.ts';
import { FailedAttempts } from '../failed-attempts.ts';
import type { Logger } from '../observability/logger.ts';
import { answerProblem } from '../problems/answer.ts';
import type { Problem } from '../problems/document.ts';
import { Throttle } from '../throttle.ts';
import type { Actor } from './actor.ts';
import type { JwtVerifier } from './jwt.ts';
import { peerAddressOf } from './peer-address.ts';

export interface AccessParts {
  /** Undefined or empty: tokens are off. */
  readonly token?: string | undefined;
  /** Undefined: JWTs are off. */
  readonly jwt?: JwtVerifier | undefined;
  readonly logger: Logger;
  readonly clock: Clock;
}

type Access =
  | { readonly outcome: 'admitted'; readonly actor: Actor }
  /** `reason` is for the log, and who it was where that is known. */
  | {
      readonly outcome: 'refused';
      readonly reason: string;
      readonly actor?: Actor['name'];
      readonly problem: Problem;
    }
  | { readonly outcome: 'unverifiable' };

const REFUSALS_PER_MINUTE = 30;
const LOGGED_ADDRESSES = 10_000;

const CHALLENGE = 'Bearer realm="tollgate-admin"';
/** The scheme is case-insensitive (RFC 9110 §11.1); what an operator may choose as a token is not ours to narrow. */
const BEARER = /^bearer +(.+)$/i;
/** The compact serialization of RFC 7515 §7.1. */
const COMPACT_JWS = /^[\w-]+\.[\w-]+\.[\w-]+$/;

const READ_SCOPE = 'tollgate:read';
const WRITE_SCOPE = 'tollgate:write';

/** Lets pass who has the right to, with an {@link Actor} for {@link actorOf}; answers everybody else. After notePeerAddress. */
export function authorize({ token, jwt, logger, clock }: AccessParts): RequestHandler {
  const accepted = acceptedInWords(Boolean(token), jwt !== undefined);
  const isAdminToken = token ? matches(token) : () => false;
  const refusals = new FailedAttempts(clock, REFUSALS_PER_MINUTE);
  const silence = new Throttle(clock, 60_000, LOGGED_ADDRESSES);

  async function judge(authorization: string | undefined, mustWrite: boolean): Promise<Access> {
    if (!token && !jwt) {
      const detail = 'Nobody has access: set admin.token or admin.jwt in the configuration file.';
      return { outcome: 'refused', reason: 'nothing_configured', problem: unauthorized(detail) };
    }
    const presented = BEARER.exec(authorization ?? '')?.[1];
    if (presented === undefined) {
      const detail = `Send ${accepted} as "Authorization: Bearer <token>".`;
      return { outcome: 'refused', reason: 'missing', problem: unauthorized(detail) };
    }
    if (isAdminToken(presented)) return { outcome: 'admitted', actor: { name: 'token', mayWrite: true } };
    if (!jwt || !COMPACT_JWS.test(presented)) {
      return { outcome: 'refused', reason: 'wrong_token', problem: invalidToken(`This is not ${accepted}.`) };
    }
    const verdict = await jwt.verify(presented);
    if (verdict.outcome === 'unverifiable') return verdict;
    if (verdict.outcome === 'invalid') {
      return { outcome: 'refused', reason: `jwt_${verdict.reason}`, problem: invalidToken(verdict.detail) };
    }
    const name = `jwt:${verdict.subject}` as const;
    const mayWrite = verdict.scopes.has(WRITE_SCOPE);
    if (mayWrite || (!mustWrite && verdict.scopes.has(READ_SCOPE))) {
      return { outcome: 'admitted', actor: { name, mayWrite } };
    }
    const problem = insufficientScope(mustWrite ? WRITE_SCOPE : READ_SCOPE);
    return { outcome: 'refused', reason: 'jwt_scope', actor: name, problem };
  }

  return async (req, res, next) => {
    const client = peerAddressOf(res);
    const mustWrite = req.method !== 'GET' && req.method !== 'HEAD';
    const access = await judge(req.headers.authorization, mustWrite);
    switch (access.outcome) {
      case 'admitted':
        res.locals.actor = access.actor;
        return next();
      case 'unverifiable':
        answerProblem(res, ISSUER_UNAVAILABLE);
        return;
      case 'refused': {
        const { reason, actor, problem } = access;
        const who = actor === undefined ? { client } : { client, actor };
        // Whoever is known answers for itself, not for others at its address.
        const counted = actor ?? addressBlock(client);
        const retrySeconds = refusals.count(counted);
        if (retrySeconds !== undefined) {
          answerProblem(res, tooManyFailures(retrySeconds));
          if (silence.isDue(counted)) logger.warn(who, 'admin access refused too often: no line for each');
          return;
        }
        const requestId = answerProblem(res, problem);
        logger.warn({ ...who, reason, method: req.method, request_id: requestId }, 'admin access refused');
      }
    }
  };
}

/**
 * Digests of fixed length are compared in constant time, so that the time taken says nothing about the token, its length
 * included.
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

/** RFC 6750 §3.1: without credentials there is no error attribute. */
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
    detail: `You were refused more than ${REFUSALS_PER_MINUTE} times within a minute. What is valid is let in all the same.`,
    headers: ['Retry-After', String(retrySeconds)],
  };
}

const ISSUER_UNAVAILABLE: Problem = {
  code: 'issuer_unavailable',
  detail: "The keys of the JWT's issuer cannot be loaded: it is neither accepted nor refused.",
  headers: ['Retry-After', '10'],
};
