/**
 * Serves the public API. Checks each request in this order: overload, syntax, path, method, key, browser use,
 * suspension, quota. Then forwards it to the upstream. Only the quota check uses up quota, and a request that fails a
 * check never reaches the backend.
 */

import type { ErrorRequestHandler, Express, Request, Response } from 'express';
import type { Clock } from '../base/clock.ts';
import type { Authenticator, InvalidKey, KnownKey } from '../keys/authenticator.ts';
import type { KeyUses } from '../keys/key-uses.ts';
import type { Connections } from '../listener/connections.ts';
import { createStrictApp } from '../listener/strict-app.ts';
import type { Problem } from '../problems/document.ts';
import type { CustomerQuota, QuotaDecision } from '../quota/customer-quota.ts';
import { usageDocument } from '../quota/hourly-quota.ts';
import type { CustomerRecord } from '../store/record-fields.ts';
import { StoreUnavailableError } from '../store/store.ts';
import type { ForwardOutcome } from '../upstream/forward-request.ts';
import type { Forwarder } from '../upstream/forwarder.ts';
import { buildRequestHeaders } from '../upstream/request-headers.ts';
import type { RecentHistory } from '../usage/recent-history.ts';
import { identifyClient } from './client-address.ts';
import { isSentByBrowser, readCredentials } from './credentials.ts';
import { type Exchange, sendJson, sendProblem } from './exchange.ts';
import { guard } from './guard.ts';
import { rateLimitHeaders } from './rate-limit-headers.ts';
import type { Recorder } from './recorder.ts';
import * as refusals from './refusals.ts';
import { chooseRequestId } from './request-ids.ts';
import type { PublicSettings } from './settings.ts';

export interface PublicAppParts {
  /** Read once per request. */
  readonly settings: { readonly current: PublicSettings };
  readonly authenticator: Pick<Authenticator, 'authenticate'>;
  /** `note` is called for every request with a valid key, so it must be cheap. */
  readonly keyUses: Pick<KeyUses, 'note'>;
  readonly quota: CustomerQuota;
  readonly forwarder: Forwarder;
  readonly connections: Pick<Connections, 'abortResponse' | 'isSurplus' | 'overloadDelayMs'>;
  readonly recorder: Recorder;
  /** Undefined: no route has the purpose `usage_history`. */
  readonly history?: Pick<RecentHistory, 'of'> | undefined;
  readonly clock: Clock;
}

/** Response headers that only the gateway sets, in lower case. The backend's headers of these names are dropped. */
export const OWN_HEADER_NAMES: ReadonlySet<string> = new Set([
  'x-request-id',
  'x-api-key-expires-at',
  'ratelimit',
  'ratelimit-policy',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
]);

/** From this long before a key expires, responses state the expiry time, so that the customer can rotate the key. */
const EXPIRY_NOTICE_MS = 7 * 24 * 3600 * 1000;

/** What forwarding needs of a request that passed every check. */
interface AdmittedRequest {
  readonly path: string;
  readonly host: string;
  readonly known: KnownKey;
  readonly decision: Extract<QuotaDecision, { outcome: 'admitted' }>;
  readonly assertion: string | undefined;
}

export function createPublicApp(parts: PublicAppParts): Express {
  const { authenticator, clock, connections, forwarder, quota, recorder } = parts;

  async function handle(req: Request, res: Response): Promise<void> {
    const exchange = openExchange(req, res);
    const { settings } = exchange;
    if (recorder.inFlight > settings.maxInFlight) return refuse(exchange, refusals.overloaded(false));
    if (connections.isSurplus(req.socket)) return refuse(exchange, refusals.overloaded(true));
    const verdict = guard(req, settings.guardLimits);
    if (!verdict.passed) return refuse(exchange, verdict.problem);

    const match = settings.routes.match(verdict.path);
    if (!match.found) return refuse(exchange, { code: 'not_found', detail: match.detail });
    exchange.route = match.route.template;
    if (!match.route.methods.has(req.method)) return refuse(exchange, refusals.methodNotAllowed(match.route.allow));

    const credentials = readCredentials(req.headers.authorization, req.rawHeaders, verdict.query, settings.challenges);
    if ('problem' in credentials) {
      recorder.authenticated(credentials.reason);
      return refuse(exchange, credentials.problem);
    }
    try {
      // Await only on a cache miss: a promise per request would cost more than the lookup.
      const authenticating = authenticator.authenticate(credentials.token);
      const authentication = authenticating instanceof Promise ? await authenticating : authenticating;
      recorder.authenticated(authentication.outcome === 'known' ? 'valid' : authentication.reason);
      if (authentication.outcome === 'invalid') return refuseKey(exchange, authentication);
      const { key, customer } = authentication;
      exchange.keyId = key.id;
      exchange.customer = key.customer;
      parts.keyUses.note(authentication.use);
      if (customer === undefined) return refuseWithoutQuota(exchange, 'the key names a customer that has no record');
      exchange.plan = quota.planNameOf(customer) ?? 'unknown';
      if (settings.browserKeys !== 'allow' && isSentByBrowser(req.headers)) {
        recorder.sentByBrowser(exchange, settings.browserKeys === 'reject' ? 'refused' : 'allowed');
        if (settings.browserKeys === 'reject') return refuse(exchange, refusals.BROWSER_USE);
      }
      if (customer.suspended) return refuse(exchange, refusals.CUSTOMER_SUSPENDED);
      if (match.route.purpose === 'usage') return await sendUsage(exchange, customer);
      if (match.route.purpose === 'usage_history') return await sendHistory(exchange, customer);

      // Before the quota check: an admission expires within seconds, and a request that fails here must not be counted.
      const asserting = settings.assertions?.of(key.customer, exchange.plan, key.id);
      const assertion = asserting instanceof Promise ? await asserting : asserting;

      const deciding = quota.decide(customer);
      const decision = deciding instanceof Promise ? await deciding : deciding;
      if (decision.outcome === 'admitted') exchange.release = decision.release;
      recorder.decided(exchange, decision);
      if (decision.outcome !== 'admitted') return refuseByQuota(exchange, decision);
      forward(exchange, {
        path: match.path + verdict.query,
        host: verdict.host,
        known: authentication,
        decision,
        assertion,
      });
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
      recorder.undecided(exchange, error);
      refuse(exchange, refusals.STORE_UNAVAILABLE);
    }
  }

  function openExchange(req: Request, res: Response): Exchange {
    const { headers } = req;
    const settings = parts.settings.current;
    const exchange: Exchange = {
      req,
      res,
      settings,
      requestId: chooseRequestId(headers['x-request-id'], headers.authorization),
      startedAtMs: clock.monotonicMs(),
      client: identifyClient(req, settings),
      route: 'none',
      plan: 'none',
    };
    res.locals.exchange = exchange;
    recorder.opened();
    return exchange;
  }

  function refuseKey(exchange: Exchange, { keyId, customer }: InvalidKey): void {
    // For operators only: the response does not depend on what is wrong with the key.
    if (keyId !== undefined) exchange.keyId = keyId;
    if (customer !== undefined) exchange.customer = customer;
    const { failedKeys, challenges } = exchange.settings;
    const retrySeconds = failedKeys.count(exchange.client.address);
    if (retrySeconds === undefined) refuse(exchange, refusals.invalidKey(challenges));
    else refuse(exchange, refusals.tooManyFailures(retrySeconds));
  }

  function refuseWithoutQuota(exchange: Exchange, reason: string): void {
    recorder.limitMissing(exchange, reason);
    refuse(exchange, refusals.QUOTA_NOT_CONFIGURED);
  }

  function refuseByQuota(exchange: Exchange, decision: Exclude<QuotaDecision, { outcome: 'admitted' }>): void {
    if (decision.outcome === 'not_configured') refuseWithoutQuota(exchange, decision.reason);
    else if (decision.outcome === 'burst_exceeded') refuse(exchange, refusals.burstExceeded(decision, clock.nowMs()));
    else if (decision.outcome === 'too_many_concurrent') refuse(exchange, refusals.tooManyConcurrent(decision));
    else refuse(exchange, refusals.quotaExceeded(decision, clock.nowMs()));
  }

  /** Sends the customer's usage as the quota check counts it. Not counted itself, and available with no quota left. */
  async function sendUsage(exchange: Exchange, customer: CustomerRecord): Promise<void> {
    const limit = quota.limitOf(customer);
    if (!limit.found) return refuseWithoutQuota(exchange, limit.reason);
    const usage = await quota.recentUsage(customer, limit.requestsPerHour);
    sendJson(exchange, { customer: customer.id, plan: exchange.plan, ...usageDocument(usage) });
    recorder.responded(exchange);
  }

  /** Like {@link sendUsage}: not counted, and available with no quota left. */
  async function sendHistory(exchange: Exchange, customer: CustomerRecord): Promise<void> {
    if (parts.history === undefined) throw new Error('there is no usage history, but a route to it');
    const limit = quota.limitOf(customer);
    if (!limit.found) return refuseWithoutQuota(exchange, limit.reason);
    sendJson(exchange, await parts.history.of(customer.id));
    recorder.responded(exchange);
  }

  function forward(exchange: Exchange, admitted: AdmittedRequest): void {
    const { req, res } = exchange;
    const { admission } = admitted.decision;
    forwarder.forward(req, res, {
      customer: admitted.known.key.customer,
      path: admitted.path,
      headers: buildRequestHeaders(req.rawHeaders, {
        ...exchange.settings.upstreamHeaders,
        host: admitted.host,
        httpVersion: req.httpVersion,
        own: ownRequestHeaders(exchange, admitted),
        spoofed: recorder.spoofed,
      }),
      beginDeadlineMs: admission.beginDeadlineMs,
      beginDeadlineWallMs: admission.beginDeadlineWallMs,
      responseHeaders() {
        const headers = quotaHeaders(admitted.decision);
        headers.push('X-Request-Id', exchange.requestId);
        const { expiresAtMs } = admitted.known;
        if (expiresAtMs !== undefined && expiresAtMs - clock.nowMs() <= EXPIRY_NOTICE_MS) {
          headers.push('X-Api-Key-Expires-At', new Date(expiresAtMs).toISOString());
        }
        return headers;
      },
      onOutcome(outcome) {
        if (!outcome.wasSent) admission.refund();
        if (outcome.kind === 'failed' && !outcome.headSent) {
          const headers = outcome.wasSent ? quotaHeaders(admitted.decision) : undefined;
          refuse(exchange, refusals.upstreamFailed(outcome.failure, headers), outcome);
          return;
        }
        if (outcome.kind === 'failed') connections.abortResponse(res);
        recorder.forwarded(exchange, outcome);
      },
      onBug: (error) => handleError(error, exchange),
    });
  }

  function ownRequestHeaders(exchange: Exchange, { known, host, assertion }: AdmittedRequest): string[] {
    const { client, customer = '', plan, requestId, settings } = exchange;
    const own = ['X-Request-Id', requestId];
    if (settings.identityHeaders) {
      own.push('X-Tollgate-Customer', customer, 'X-Tollgate-Plan', plan, 'X-Tollgate-Key-Id', known.key.id);
    }
    if (assertion !== undefined) own.push('X-Tollgate-Assertion', assertion);
    own.push('X-Forwarded-For', client.forwardedFor, 'X-Forwarded-Proto', client.proto);
    const forwardedHost = client.host ?? host;
    if (forwardedHost !== '') own.push('X-Forwarded-Host', forwardedHost);
    return own;
  }

  /** Returns the quota headers of responses to counted requests, whether from the backend or a problem document. */
  function quotaHeaders({ admission, burst, limit }: AdmittedRequest['decision']): string[] {
    const hour = { limit, remaining: admission.remaining, resetSeconds: admission.resetSeconds() };
    return rateLimitHeaders(hour, burst, clock.nowMs());
  }

  function refuse(exchange: Exchange, problem: Problem, outcome?: ForwardOutcome): void {
    // Recorded at once: a refusal that waits is not in progress.
    const delayMs = problem.code === 'overloaded' ? connections.overloadDelayMs(exchange.req.socket) : 0;
    if (delayMs === 0) sendProblem(exchange, problem);
    else setTimeout(sendProblem, delayMs, exchange, problem);
    recorder.refused(exchange, problem.code, outcome);
  }

  /** Handles an unexpected error: details go only to the log. The client gets a 500, or a truncated response. */
  function handleError(error: unknown, exchange: Exchange): void {
    recorder.bug(error, exchange);
    if (exchange.res.headersSent) connections.abortResponse(exchange.res);
    else sendProblem(exchange, refusals.INTERNAL_ERROR);
  }

  const handleExpressError: ErrorRequestHandler = (error, _req, res, _next) => {
    const exchange = res.locals.exchange as Exchange | undefined;
    if (exchange !== undefined) return handleError(error, exchange);
    recorder.bug(error, undefined);
    res.destroy();
  };

  const app = createStrictApp();
  app.use(handle);
  app.use(handleExpressError);
  return app;
}
