/**
 * The way of a public request, in order: syntax, path, method, key, suspension, quota, upstream. Nothing before the
 * quota costs the customer anything, and nothing that is refused reaches the backend.
 */
import type { ErrorRequestHandler, Express, Request, Response } from 'express';
import type { Clock } from '../clock.ts';
import type { Authentication, Authenticator } from '../keys/authenticator.ts';
import type { Problem } from '../problems/document.ts';
import type { Admission, HourlyQuota } from '../quota/hourly-quota.ts';
import { effectiveLimit, type LimitPolicy } from '../quota/limit.ts';
import { type CustomerRecord, StoreUnavailableError } from '../store/store.ts';
import { createStrictApp } from '../strict-app.ts';
import type { Forwarder, ForwardOutcome } from '../upstream/forwarder.ts';
import { buildRequestHeaders, type CredentialsPolicy } from '../upstream/request-headers.ts';
import { identifyCaller, type TrustedProxies } from './client-address.ts';
import { type Challenges, readCredentials } from './credentials.ts';
import { type Exchange, sendProblem } from './exchange.ts';
import { type GuardLimits, guard } from './guard.ts';
import { rateLimitHeaders } from './rate-limit-headers.ts';
import type { Recorder } from './recorder.ts';
import * as refusals from './refusals.ts';
import { chooseRequestId } from './request-id.ts';
import type { RouteTable } from './routes.ts';

export interface PublicAppParts {
  readonly routes: RouteTable;
  readonly guardLimits: GuardLimits;
  readonly challenges: Challenges;
  readonly trustedProxies: TrustedProxies;
  readonly authenticator: Authenticator;
  readonly limits: LimitPolicy;
  readonly quota: HourlyQuota;
  readonly forwarder: Forwarder;
  readonly upstreamHeaders: CredentialsPolicy;
  /** Whether the backend is told who calls, by X-Tollgate-* headers. */
  readonly identityHeaders: boolean;
  readonly recorder: Recorder;
  readonly clock: Clock;
}

/** Fields of an answer that only the gateway gives, in lower case: the backend's own of these names are dropped. */
export const OWN_ANSWER_NAMES: ReadonlySet<string> = new Set([
  'x-request-id',
  'x-api-key-expires-at',
  'ratelimit',
  'ratelimit-policy',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
]);

const EXPIRY_NOTICE_MS = 7 * 24 * 3600 * 1000;
type KnownKey = Extract<Authentication, { outcome: 'known' }>;

/** What a request is forwarded with, once every check has passed. */
interface Cleared {
  readonly path: string;
  readonly host: string;
  readonly known: KnownKey;
  readonly admission: Extract<Admission, { outcome: 'admitted' }>;
  readonly limit: number;
}

export function createPublicApp(parts: PublicAppParts): Express {
  const { authenticator, challenges, clock, forwarder, limits, quota, recorder, routes } = parts;

  async function handle(req: Request, res: Response): Promise<void> {
    const exchange = openExchange(req, res);
    const verdict = guard(req, parts.guardLimits);
    if (!verdict.passed) return refuse(exchange, verdict.problem);

    const match = routes.match(verdict.path);
    if (!match.found) return refuse(exchange, { code: 'not_found', detail: match.detail });
    exchange.route = match.route.template;
    if (!match.route.methods.has(req.method)) return refuse(exchange, refusals.methodNotAllowed(match.route.allow));

    const credentials = readCredentials(req.headers.authorization, req.rawHeaders, challenges);
    if ('problem' in credentials) {
      recorder.authenticated(credentials.problem.code === 'missing_key' ? 'missing' : 'malformed');
      return refuse(exchange, credentials.problem);
    }
    try {
      const authentication = await authenticate(credentials.token);
      if (authentication.outcome === 'invalid') return refuse(exchange, refusals.invalidKey(challenges));
      const { key, customer } = authentication;
      exchange.keyId = key.id;
      exchange.customer = key.customer;
      if (customer?.suspended) return refuse(exchange, refusals.customerSuspended());

      const limit = findLimit(exchange, customer);
      if (limit === undefined) return refuse(exchange, refusals.quotaNotConfigured());
      const admission = await admit(exchange, limit);
      if (admission.outcome === 'refused') {
        return refuse(exchange, refusals.quotaExceeded(limit, admission.resetSeconds(), clock.nowMs()));
      }
      await forward(exchange, {
        path: match.path + verdict.query,
        host: verdict.host,
        known: authentication,
        admission,
        limit,
      });
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
      refuse(exchange, refusals.storeUnavailable());
    }
  }

  function openExchange(req: Request, res: Response): Exchange {
    const { headers, socket } = req;
    const exchange: Exchange = {
      req,
      res,
      requestId: chooseRequestId(headers['x-request-id'], headers.authorization),
      startedAt: clock.monotonicMs(),
      caller: identifyCaller(
        {
          peerAddress: socket.remoteAddress ?? '',
          encrypted: 'encrypted' in socket,
          forwardedFor: headers['x-forwarded-for'] as string | undefined,
          forwardedProto: headers['x-forwarded-proto'] as string | undefined,
          forwardedHost: headers['x-forwarded-host'] as string | undefined,
        },
        parts.trustedProxies,
      ),
      route: 'none',
      plan: 'none',
    };
    res.locals.exchange = exchange;
    recorder.opened();
    return exchange;
  }

  async function authenticate(token: string): Promise<Authentication> {
    try {
      const authentication = await authenticator.authenticate(token);
      recorder.authenticated(authentication.outcome === 'known' ? 'valid' : authentication.reason);
      return authentication;
    } catch (error) {
      recorder.authenticated('store_error');
      throw error;
    }
  }

  /** The customer's limit; undefined, with the reason in the log, when there is none. */
  function findLimit(exchange: Exchange, customer: CustomerRecord | undefined): number | undefined {
    if (customer === undefined) {
      recorder.limitMissing(exchange, 'the key names a customer that has no record');
      return undefined;
    }
    exchange.plan = limits.plans.has(customer.plan) ? customer.plan : 'unknown';
    const limit = effectiveLimit(customer, limits);
    if (limit.found) return limit.requestsPerHour;
    recorder.limitMissing(exchange, limit.reason);
    return undefined;
  }

  async function admit(exchange: Exchange, limit: number): Promise<Admission> {
    try {
      const admission = await quota.admit(exchange.customer ?? '', limit);
      exchange.quota = admission.outcome;
      recorder.quotaDecided(exchange.plan, admission.outcome === 'admitted' ? 'allowed' : 'denied');
      return admission;
    } catch (error) {
      recorder.quotaDecided(exchange.plan, 'store_error');
      throw error;
    }
  }

  async function forward(exchange: Exchange, { path, host, known, admission, limit }: Cleared): Promise<void> {
    const { req, res, requestId } = exchange;
    /** Of every answer to a request that was counted, the backend's own or a problem. */
    const quotaHeaders = () =>
      rateLimitHeaders(
        { limit, remaining: admission.remaining, resetSeconds: admission.resetSeconds() },
        clock.nowMs(),
      );
    const outcome = await forwarder.forward(req, res, {
      path,
      headers: buildRequestHeaders(req.rawHeaders, {
        ...parts.upstreamHeaders,
        host,
        httpVersion: req.httpVersion,
        own: ownRequestHeaders(exchange, known.key.id, host),
      }),
      beginBefore: admission.beginBefore,
      answerHeaders: () => ['X-Request-Id', requestId, ...quotaHeaders(), ...expiryHeaders(known)],
    });
    if (!outcome.begun) admission.giveBack();
    if (outcome.kind !== 'failed' || outcome.headSent) return recorder.forwarded(exchange, outcome);
    refuse(exchange, refusals.upstreamFailed(outcome, quotaHeaders), outcome);
  }

  function ownRequestHeaders(exchange: Exchange, keyId: string, host: string): string[] {
    const { caller, customer = '', plan, requestId } = exchange;
    const own = ['X-Request-Id', requestId];
    if (parts.identityHeaders) {
      own.push('X-Tollgate-Customer', customer, 'X-Tollgate-Plan', plan, 'X-Tollgate-Key-Id', keyId);
    }
    own.push('X-Forwarded-For', caller.forwardedFor, 'X-Forwarded-Proto', caller.proto);
    const forwardedHost = caller.host ?? host;
    if (forwardedHost !== '') own.push('X-Forwarded-Host', forwardedHost);
    return own;
  }

  /** A key near its end says so, in time to rotate it. */
  function expiryHeaders({ expiresAtMs }: KnownKey): string[] {
    if (expiresAtMs === undefined || expiresAtMs - clock.nowMs() > EXPIRY_NOTICE_MS) return [];
    return ['X-Api-Key-Expires-At', new Date(expiresAtMs).toISOString()];
  }

  function refuse(exchange: Exchange, problem: Problem, outcome?: ForwardOutcome): void {
    sendProblem(exchange, problem);
    recorder.refused(exchange, problem.code, outcome);
  }

  /** A bug: the caller learns that it was one, the log learns which. */
  const handleBug: ErrorRequestHandler = (error, _req, res, _next) => {
    const exchange = res.locals.exchange as Exchange | undefined;
    recorder.bug(error, exchange?.requestId);
    if (exchange === undefined || res.headersSent) {
      res.destroy();
      return;
    }
    refuse(exchange, refusals.internalError());
  };

  const app = createStrictApp();
  app.use(handle);
  app.use(handleBug);
  return app;
}
