/**
 * Who sends a request to the portal: the session of its cookie, or of its bearer token. Each request looks its session and
 * its customer up, so that sessions end at once in every gateway. Only secrets that are not valid count as failed attempts;
 * valid ones are accepted whatever else their address sends.
 */
import type { Request, RequestHandler, Response } from 'express';
import type { ApiRoute } from '../../api/admin/route-table.ts';
import type { Clock } from '../../base/clock.ts';
import { Throttle } from '../../base/throttle.ts';
import { BurstLimiter } from '../../customers/quota/burst.ts';
import { addressBlock } from '../../formats/address-block.ts';
import { FailedAttempts } from '../../http/listener/failed-attempts.ts';
import { type BoundCookie, bindingOf, ownCookies } from '../../pages/bound-cookie.ts';
import { type PortalSession, portalSecretHash } from '../../store/portal-sessions.ts';
import { type CustomerRecord, isSuspendedAt } from '../../store/record-fields.ts';
import { Refusal } from '../frame/refusal.ts';
import { type Actor, factsOf } from '../frame/response-locals.ts';
import type { PortalContext } from './portal-context.ts';

const FAILURES_PER_MINUTE = 30;
const MAX_LOGGED_ADDRESSES = 10_000;
/** Of each customer. One costs as much as many requests of the public listener. */
const REQUESTS_PER_SECOND = 50;
const MAX_COUNTED_CUSTOMERS = 10_000;
const CHALLENGE = 'Bearer realm="tollgate-portal"';
const BEARER = /^bearer +(\S+)$/i;
const SECRET = /^[\w-]{43}$/;
const ENDED = 'The session has ended. Open the portal again from where you came.';
/** Cookies of the name that are tried: programs on other ports and subdomains can add any number. */
const MAX_COOKIES = 8;

interface Visit {
  readonly session: PortalSession;
  readonly customer: CustomerRecord;
  /** Of the secret in the store. */
  readonly sha256: string;
}

/** Returns the session of a request that {@link SessionAccess.require} let pass. */
export function visitOf({ locals }: Response): Visit {
  return locals.visit;
}

/** Returns what a session's cookie is stored under. Neither the cookie nor the binding is worth anything alone. */
export function cookieHash(cookie: string, binding: string): string {
  return portalSecretHash(`${cookie} ${binding}`);
}

export type PortalCounters = ReturnType<typeof createPortalCounters>;

/** What is remembered of invalid secrets and of requests. Outlives reloads of the config. */
export function createPortalCounters(clock: Clock) {
  return {
    failures: new FailedAttempts(clock, FAILURES_PER_MINUTE),
    warnings: new Throttle(clock, 60_000, MAX_LOGGED_ADDRESSES),
    requests: new BurstLimiter(clock, MAX_COUNTED_CUSTOMERS),
  };
}

export type SessionAccess = ReturnType<typeof createSessionAccess>;

export function createSessionAccess(
  { records, portalSessions, logger, limitClock }: PortalContext,
  cookie: BoundCookie,
  { failures, warnings, requests }: PortalCounters,
) {
  /** Counts and logs an invalid secret, and returns the refusal. */
  function refusal(res: Response, detail: string, reason: string): Refusal {
    const { clientAddress: client, route } = factsOf(res);
    const retrySeconds = failures.count(client);
    if (retrySeconds === undefined || warnings.isDue(addressBlock(client))) {
      logger.warn({ client, reason, method: res.req.method, route }, 'portal access refused');
    }
    if (retrySeconds === undefined) return unauthorized(detail, ', error="invalid_token"');
    const tooMany = 'Too many invalid links, sessions or tokens came from your address. Valid ones are accepted.';
    return new Refusal('too_many_failures', tooMany, {}, ['Retry-After', String(retrySeconds)]);
  }

  /**
   * Resolves to the session's customer as it is now; undefined if it was deleted, also if its id was used again. The admin
   * API ends the sessions of a customer that it deletes, but other programs delete records too.
   */
  async function customerOf({ customer, customerCreatedAt }: PortalSession): Promise<CustomerRecord | undefined> {
    const record = await records.findCustomerRecord(customer);
    // A record without a creation time looks the same when it is created again.
    if (!record) await portalSessions.endAll(customer);
    // Versions before 0.3.0 stored no creation time.
    if (customerCreatedAt !== undefined && customerCreatedAt !== (record?.createdAt ?? '')) return undefined;
    // A suspension that has ended is none.
    return record && { ...record, suspended: isSuspendedAt(record, limitClock.nowMs()) };
  }

  async function find(kind: 'cookie' | 'token', sha256s: readonly string[]): Promise<Visit | undefined> {
    for (const sha256 of sha256s) {
      const session = await portalSessions.find(kind, sha256);
      const customer = session && (await customerOf(session));
      if (customer) return { session, customer, sha256 };
    }
    return undefined;
  }

  /** @throws Refusal */
  async function visitFor({ headers }: Request, res: Response, mustWrite: boolean): Promise<Visit> {
    const token = BEARER.exec(headers.authorization ?? '')?.[1];
    if (token !== undefined) {
      const visit = SECRET.test(token) ? await find('token', [portalSecretHash(token)]) : undefined;
      if (visit) return visit;
      throw refusal(res, 'The token is unknown or has ended.', 'token');
    }
    const cookies = cookie.of(headers).filter(({ value }) => SECRET.test(value));
    const binding = bindingOf(headers);
    // Pages ask this first. To have no session is no failed attempt.
    if (cookies.length === 0 || binding === undefined) throw unauthorized(ENDED);
    const own = ownCookies(headers, cookies, mustWrite);
    if ('problem' in own) throw new Refusal(own.problem.code, own.problem.detail);
    const sha256s = own.slice(0, MAX_COOKIES).map(({ value }) => cookieHash(value, binding));
    const visit = await find('cookie', sha256s);
    if (visit) return visit;
    throw refusal(res, ENDED, 'session');
  }

  /** @throws Refusal `too_many_reads` */
  function countRequest(customer: string): void {
    const request = requests.take(customer, REQUESTS_PER_SECOND);
    if (request.allowed) return;
    const retryAfter = ['Retry-After', String(request.resetSeconds)];
    throw new Refusal('too_many_reads', `More than ${REQUESTS_PER_SECOND} requests within a second.`, {}, retryAfter);
  }

  /** Lets requests with a session pass, and only with the scope of the route if it has one. */
  function require(scope: ApiRoute['scope']): RequestHandler {
    return async (req, res, next) => {
      const mustWrite = req.method !== 'GET' && req.method !== 'HEAD';
      const visit = await visitFor(req, res, mustWrite);
      const { session, customer } = visit;
      res.locals.visit = visit;
      factsOf(res).actor = actorOf(visit);
      // Changes too: those that come to nothing do not count as changes.
      countRequest(customer.id);
      if (scope === undefined) return next();
      if (!session.scopes.includes(scope)) throw lacksScope(scope);
      if (mustWrite && customer.suspended) {
        throw new Refusal('customer_suspended', 'The account is suspended: its keys can be seen, but not changed.');
      }
      next();
    };
  }

  return { customerOf, refusal, require };
}

/** Returns who is in log and audit. */
export function actorOf({ customer, session }: Pick<Visit, 'customer' | 'session'>): Actor {
  const mayWrite = !customer.suspended && session.scopes.includes('keys:write');
  return { name: `portal:${customer.id}`, user: session.user, mayWrite };
}

/** Without credentials, the challenge has no error attribute (RFC 6750 §3.1). */
function unauthorized(detail: string, error = ''): Refusal {
  return new Refusal('unauthorized', detail, {}, ['WWW-Authenticate', CHALLENGE + error]);
}

function lacksScope(scope: string): Refusal {
  const challenge = ['WWW-Authenticate', `${CHALLENGE}, error="insufficient_scope", scope="${scope}"`];
  return new Refusal('insufficient_scope', `This session lacks the scope ${scope}.`, {}, challenge);
}
