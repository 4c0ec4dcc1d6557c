/**
 * Admits or refuses requests of the admin listener by their credentials. Counts, logs and audits refusals.
 * Unauthenticated requests get 401, whatever the path.
 *
 * Only credentials that are not valid count as failed attempts: any web page can send requests without credentials. Valid
 * credentials are neither refused nor slowed down, whatever else their address sends. What protects the admin token is its
 * length (docs/dev/decisions/0017-guesses-of-the-admin-token-are-not-paced.md).
 */
import type { Request, RequestHandler, Response } from 'express';
import type { Clock } from '../../base/clock.ts';
import { Throttle } from '../../base/throttle.ts';
import { addressBlock } from '../../formats/address-block.ts';
import { FailedAttempts } from '../../http/listener/failed-attempts.ts';
import { type Problem, sendProblem } from '../../http/problems/document.ts';
import { ownCookies } from '../../pages/bound-cookie.ts';
import type { AuditStore } from '../../store/audit.ts';
import { type Actor, factsOf } from '../frame/response-locals.ts';
import {
  type CredentialChecker,
  type Credentials,
  createCredentialChecker,
  credentialsOf,
  type RefusedAccess,
} from './credentials.ts';
import type { AdminDependencies } from './dependencies.ts';

const FAILURES_PER_MINUTE = 30;
const MAX_LOGGED_ADDRESSES = 10_000;
/** An address block that keeps guessing gets a new audit entry after an hour. */
const AUDIT_AGAIN_AFTER_MS = 3_600_000;
/** At most one audit entry about refusals per interval and kind, over all address blocks, so they cannot fill the audit. */
const AUDIT_INTERVAL_MS = 60_000;
const AUDITED_LOGINS = 10_000;

export type AccessCounters = ReturnType<typeof createAccessCounters>;

/** What is remembered of refused access, and when an actor's login was last audited. Outlives reloads of the config. */
export function createAccessCounters(clock: Clock) {
  return {
    failures: new FailedAttempts(clock, FAILURES_PER_MINUTE),
    warnings: new Throttle(clock, 60_000, MAX_LOGGED_ADDRESSES),
    auditedBlocks: new Throttle(clock, AUDIT_AGAIN_AFTER_MS, MAX_LOGGED_ADDRESSES),
    audits: new Throttle(clock, AUDIT_INTERVAL_MS, 2),
    /**
     * At most one audit entry per interval and actor: otherwise a JWT that may only read could push the entries of others
     * out of the audit.
     */
    logins: new Throttle(clock, AUDIT_INTERVAL_MS, AUDITED_LOGINS),
  };
}

export interface Gate {
  /** Passes authenticated requests on, with their {@link Actor} in `factsOf`, and responds to all others. */
  readonly authorize: RequestHandler;
  /** Resolves to the actor of a request that changes nothing; to undefined after responding with a refusal. */
  admitReader(req: Request, res: Response, credentials: Credentials): Promise<Actor | undefined>;
  /** Audits a failed login: the first one of an address block within an hour. */
  auditFailedLogin(res: Response): void;
  readonly sealSession: CredentialChecker['sealSession'];
}

/** Its handlers must be mounted after noteRequest. */
export function createGate(
  {
    token,
    jwt,
    logger,
    clock,
    audit,
  }: Pick<AdminDependencies, 'token' | 'jwt' | 'logger' | 'clock'> & {
    readonly audit: Pick<AuditStore, 'append'>;
  },
  { failures, warnings, auditedBlocks, audits }: Omit<AccessCounters, 'logins'>,
): Gate {
  const credentialChecker = createCredentialChecker({ token, jwt, clock });

  async function admit(req: Request, res: Response, credentials: Credentials, mustWrite: boolean) {
    const own = refuseForeign(req, credentials, mustWrite);
    const access = 'problem' in own ? own : await credentialChecker.check(own, mustWrite);
    if ('admitted' in access) {
      factsOf(res).actor = access.admitted;
      return access.admitted;
    }
    refuse(req, res, access);
    return undefined;
  }

  function refuse(req: Request, res: Response, { problem, reason, actor, isFailedAttempt }: RefusedAccess): void {
    if (reason === undefined) return void sendProblem(res, problem);
    const { clientAddress: client, route } = factsOf(res);
    const sender = actor === undefined ? { client } : { client, actor };
    // Refusals of a known actor count for the actor, not for other clients at its address.
    const countedId = actor ?? addressBlock(client);
    const retrySeconds = isFailedAttempt && failures.count(countedId);
    if (retrySeconds === undefined) {
      const requestId = sendProblem(res, problem);
      if (!isFailedAttempt && !warnings.isDue(`${reason} ${countedId}`)) return;
      const facts = { ...sender, reason, method: req.method, route, request_id: requestId };
      logger.warn(facts, 'admin access refused');
      return;
    }
    sendProblem(res, tooManyFailures(retrySeconds));
    if (!warnings.isDue(countedId)) return;
    logger.warn(sender, 'admin access refused too often: further refusals are not logged one by one');
    auditRefusal('guesses', client, actor);
  }

  function auditRefusal(kind: 'guesses' | 'login', client: string, actor: string = 'unknown'): void {
    if (!auditedBlocks.isDue(`${kind} ${addressBlock(client)}`) || !audits.isDue(kind)) return;
    const at = new Date(clock.nowMs()).toISOString();
    audit
      .append({ at, actor, from: client, action: 'access.refused' })
      .catch((error: unknown) => logger.error({ err: error }, 'refused access cannot be written to the audit'));
  }

  return {
    sealSession: credentialChecker.sealSession,
    async authorize(req, res, next) {
      const mustWrite = req.method !== 'GET' && req.method !== 'HEAD';
      if (await admit(req, res, credentialsOf(req.headers), mustWrite)) next();
    },
    admitReader: (req, res, credentials) => admit(req, res, credentials, false),
    auditFailedLogin: (res) => auditRefusal('login', factsOf(res).clientAddress),
  };
}

/** Returns the credentials without the session cookies that a page of another origin may have caused to be sent. */
function refuseForeign(
  { headers }: Request,
  credentials: Credentials,
  mustWrite: boolean,
): RefusedAccess | Credentials {
  if (credentials.kind !== 'cookie') return credentials;
  const own = ownCookies(headers, credentials.cookies, mustWrite);
  return 'problem' in own ? own : { ...credentials, cookies: own };
}

function tooManyFailures(retrySeconds: number): Problem {
  return {
    code: 'too_many_failures',
    detail: `More than ${FAILURES_PER_MINUTE} invalid credentials came from your address within a minute. Valid ones are accepted all the same.`,
    headers: ['Retry-After', String(retrySeconds)],
  };
}
