/**
 * Decides the requests of clients, the same for each listener that serves them. Checks each request in this order:
 * overload, syntax, path, method, maintenance, body size, key, allowed address, browser use, suspension, scope, sunset, quota.
 * Maintenance comes before the key: its response is the same for everyone, and costs neither quota nor a call of the store.
 * After each wait, the checks from the key on are repeated with the current records, and maintenance once more before the
 * request is served. A route that needs no key has a limit of requests in progress in place of the checks of the key. Only
 * the quota check uses up quota. The listener reads the request (syntax, body), and serves the requests that are admitted.
 */
import { isDeepStrictEqual } from 'node:util';
import type { ErrorRequestHandler, Express, Request, Response } from 'express';
import type { Clock } from '../base/clock.ts';
import { mapAll } from '../base/non-empty.ts';
import type { Authentication, Authenticator, InvalidKey } from '../customers/keys/authenticator.ts';
import type { KeyUses } from '../customers/keys/key-uses.ts';
import { ConcurrencyLimiter } from '../customers/quota/concurrency.ts';
import type { CustomerQuota, QuotaDecision } from '../customers/quota/customer-quota.ts';
import { keyUsageDocument, usageDocument } from '../customers/quota/hourly-quota.ts';
import type { CeilingOfKey } from '../customers/quota/key-ceiling.ts';
import type { Connections } from '../http/listener/connections.ts';
import { createStrictApp } from '../http/listener/strict-app.ts';
import type { Problem } from '../http/problems/document.ts';
import { StoreUnavailableError } from '../store/errors.ts';
import type { CustomerRecord, EnforcedKey } from '../store/record-fields.ts';
import type { ForwardOutcome } from '../upstream/forward-request.ts';
import type { BodyFault, RequestBody } from '../upstream/request-body.ts';
import { UNKNOWN_ADDRESS } from './client-address.ts';
import { type ClientCredentials, isSentByBrowser } from './credentials.ts';
import { KeylessSlots, keylessBlock } from './keyless.ts';
import type { MaintenanceWatch } from './maintenance.ts';
import { type Form, rateLimitHeaders } from './rate-limit-headers.ts';
import type { Recorder } from './recorder.ts';
import * as refusals from './refusals.ts';
import { RequestContext, sendJson } from './request-context.ts';
import type { RouteLife } from './route-life.ts';
import type { Route } from './routes.ts';
import type { PublicSettings } from './settings.ts';

export interface DecisionParts {
  readonly authenticator: Pick<Authenticator, 'authenticate' | 'authenticateSha256'>;
  /** `note` is called for every request that its key allows, so it must be cheap. */
  readonly keyUses: Pick<KeyUses, 'note'>;
  readonly quota: CustomerQuota;
  readonly maintenance: Pick<MaintenanceWatch, 'of'>;
  readonly connections: Pick<Connections, 'abortResponse' | 'isSurplus'>;
  readonly recorder: Recorder;
  readonly clock: Clock;
}

/** A promise only if the request has to wait: one for each request would cost more than most checks. */
export type Ending = Promise<void> | undefined;

/** What a listener does with the decision. */
interface DecisionHandlers {
  /** Failed keys are not counted. */
  readonly isDryRun?: boolean;
  /** In place of {@link CustomerQuota.decide}. */
  readonly decideQuota?: (
    customer: CustomerRecord,
    units: number,
    ceiling: CeilingOfKey,
  ) => QuotaDecision | Promise<QuotaDecision>;
  /** Serves a request that the quota has admitted. */
  admitted(context: RequestContext): undefined;
  /** Sends a refusal. Whatever was taken from the quota is already given back. */
  sendProblem(context: RequestContext, problem: Problem): void;
}

/** From this long before a key expires, responses state the expiry time, so that the customer can rotate the key. */
const EXPIRY_NOTICE_MS = 7 * 24 * 3600 * 1000;

/** The client left before its request was complete. */
const NEVER_SENT: ForwardOutcome = {
  kind: 'client_gone',
  wasSent: false,
  status: undefined,
  upstreamMs: 0,
  upstream: undefined,
  contentBytes: 0,
};

/** A key with unreadable scopes, which is an empty list, is refused on every route. */
function allowsScope({ scopes }: EnforcedKey, scope: string | undefined): boolean {
  return scopes === undefined || (scopes.length > 0 && (scope === undefined || scopes.includes(scope)));
}

/** Returns whether a client sends its body only when told to (RFC 9110 §10.1.1). */
export function expectsContinue({ httpVersion, headers }: Request): boolean {
  return httpVersion === '1.1' && Boolean(headers.expect);
}

/** Takes the next step of a request once its value is known. */
function proceed<Value>(
  context: RequestContext,
  value: Value | Promise<Value>,
  step: (context: RequestContext, value: Value) => Ending,
): Ending {
  return value instanceof Promise ? value.then(step.bind(undefined, context)) : step(context, value);
}

export function createDecision(parts: DecisionParts, handlers: DecisionHandlers) {
  const { authenticator, clock, connections, quota, recorder } = parts;
  const { isDryRun = false, decideQuota = quota.decide.bind(quota) } = handlers;
  /** Counts the requests whose body is buffered: slow uploads of one customer must leave room for others. */
  const uploads = new ConcurrencyLimiter();
  const keylessSlots = new KeylessSlots();

  /** Begins a request. If the gateway is overloaded, refuses it and returns undefined. */
  function open(req: Request, res: Response, settings: PublicSettings): RequestContext | undefined {
    const context = new RequestContext(req, res, settings, clock.monotonicMs());
    res.locals = { context };
    recorder.opened();
    if (recorder.inFlight > settings.maxInFlight) return refuse(context, refusals.overloaded(false));
    return connections.isSurplus(req.socket) ? refuse(context, refusals.overloaded(true)) : context;
  }

  /** Returns the route of a valid path and a method. Without one, refuses the request. */
  function routeFor(context: RequestContext, path: string, query: string, method: string): Route | undefined {
    const match = context.settings.routes.match(path, method);
    if (!match.found) return refuse(context, { code: 'not_found', detail: match.detail });
    const { route } = match;
    context.matched = route;
    context.path = match.path + query;
    if (!route.methods.has(method)) return refuse(context, refusals.methodNotAllowed(route.allow, method));
    const problem = closure(context);
    return problem === undefined ? route : refuse(context, problem);
  }

  /** Returns why the route is closed, whatever the key: by a maintenance or, if it needs no key, since its sunset. */
  function closure({ matched: route, method }: RequestContext): Problem | undefined {
    if (route?.purpose !== 'forward') return undefined;
    const maintenance = parts.maintenance.of(route.template, method);
    if (maintenance !== undefined) return refusals.inMaintenance(maintenance, clock.nowMs());
    return route.key === 'none' ? goneProblem(route.life) : undefined;
  }

  function goneProblem(life: RouteLife | undefined): Problem | undefined {
    return life !== undefined && clock.nowMs() >= life.sunsetAtMs ? refusals.gone(life) : undefined;
  }

  /** Decides by the key, and all that follows from it. If the route needs none, the credentials do not matter. */
  function decide(context: RequestContext, credentials: ClientCredentials): Ending {
    const { matched: route } = context;
    if (route?.purpose === 'forward' && route.key === 'none') return admitKeyless(context);
    if ('problem' in credentials) {
      recorder.authenticated(credentials.reason);
      return refuse(context, credentials.problem);
    }
    context.keyHeader = credentials.header;
    return proceed(context, authenticator.authenticate(credentials.token), authenticated);
  }

  /** Serves a request whose route needs no key, if those have a slot left: no quota bounds them. */
  function admitKeyless(context: RequestContext): Ending {
    const { body, client, settings } = context;
    context.keylessBlock = keylessBlock(client.address);
    context.releaseKeyless = keylessSlots.take(context.keylessBlock, settings.maxInFlight);
    if (context.releaseKeyless === undefined) return refuse(context, refusals.TOO_MANY_KEYLESS);
    return body === undefined ? serve(context) : receiveStart(context, body);
  }

  /** Decides by the records of now, so it is called again after each wait: for a body, a signature, or the store. */
  function authenticated(context: RequestContext, authentication: Authentication): Ending {
    const { matched: route, req, settings } = context;
    const isFirst = context.known === undefined;
    if (isFirst) recorder.authenticated(authentication.outcome === 'known' ? 'valid' : authentication.reason);
    if (authentication.outcome === 'invalid') return refuseKey(context, authentication);
    if (isFirst && context.keyHeader !== undefined) recorder.keyHeader(context.keyHeader);
    const { key, customer, addresses } = authentication;
    context.known = authentication;
    context.keyId = key.id;
    context.customer = key.customer;
    if (customer !== undefined) context.plan = quota.planNameOf(customer) ?? 'unknown';
    if (addresses?.has(context.client.address) === false) return refuse(context, refusals.ADDRESS_NOT_ALLOWED);
    const scope = route?.purpose === 'forward' ? route.scope : undefined;
    const hasScope = allowsScope(key, scope);
    if (hasScope) parts.keyUses.note(authentication);
    if (isFirst && settings.browserKeys !== 'allow' && isSentByBrowser(req.headers)) {
      recorder.sentByBrowser(context, settings.browserKeys === 'reject' ? 'refused' : 'allowed');
      if (settings.browserKeys === 'reject') return refuse(context, refusals.browserUse(settings));
    }
    if (customer !== undefined && quota.isSuspended(customer)) return refuse(context, refusals.CUSTOMER_SUSPENDED);
    if (!hasScope) return refuse(context, refusals.insufficientScope(scope, settings));
    const gone = goneProblem(context.life);
    if (gone !== undefined) return refuse(context, gone);
    if (customer === undefined) return refuseWithoutQuota(context, 'the key names a customer that has no record');
    if (route?.purpose === 'forward') return admit(context, customer);
    return context.usage === undefined ? readUsage(context, customer) : sendUsage(context);
  }

  /** Forwards the request once nothing is left to wait for, and its quota was decided by this record. */
  function admit(context: RequestContext, customer: CustomerRecord): Ending {
    const { body, keyId = '', plan, settings } = context;
    const isBodyAwaited = body !== undefined && !context.hasBodyStart;
    // Before the quota check: an admission expires within seconds. But a client that expects 100 sends its body only when
    // told to, so its quota is decided first.
    if (isBodyAwaited && !expectsContinue(context.req)) return receiveStart(context, body);
    if (settings.assertions !== undefined && !isBodyAwaited && context.assertedPlan !== plan) {
      context.assertedPlan = plan;
      const assertion = settings.assertions.of(customer.id, plan, keyId, context.audience);
      if (assertion instanceof Promise) {
        return assertion.then((signed) => {
          context.assertion = signed;
          return recheck(context);
        });
      }
      context.assertion = assertion;
    }
    if (!isStillAdmitted(context, customer)) {
      const { ceiling } = context.known ?? {};
      context.decidedFor = customer;
      context.decidedUnder = ceiling;
      const decision = decideQuota(customer, context.units, ceiling);
      if (decision instanceof Promise) return decision.then(decidedLater.bind(undefined, context));
      if (!isAdmitted(context, decision)) return undefined;
    }
    return isBodyAwaited ? receiveStart(context, body) : serve(context);
  }

  function recheck(context: RequestContext): Ending {
    if (context.known === undefined) throw new Error('a request without a valid key waits');
    return proceed(context, authenticator.authenticateSha256(context.known.sha256), authenticated);
  }

  function decidedLater(context: RequestContext, decision: QuotaDecision): Ending {
    return isAdmitted(context, decision) ? recheck(context) : undefined;
  }

  /** Returns whether the request was admitted by this record, and may still begin. If not, gives back its unit and slot. */
  function isStillAdmitted(context: RequestContext, customer: CustomerRecord): boolean {
    if (context.admitted === undefined) return false;
    const isInTime = context.beginDeadlineMs > clock.monotonicMs();
    const isUnchanged = isDeepStrictEqual(
      [context.decidedFor, context.decidedUnder],
      [customer, context.known?.ceiling],
    );
    if (isInTime && isUnchanged) return true;
    giveBack(context, false);
    return false;
  }

  /** Gives back what the request took: its slot among those in progress and, if it was not sent, a unit. */
  function giveBack(context: RequestContext, wasSent: boolean): void {
    context.admitted?.admission.settle(wasSent);
    context.admitted?.release?.();
    context.admitted = undefined;
    context.releaseKeyless?.();
    context.releaseKeyless = undefined;
  }

  /** Reads the beginning of the body. */
  async function receiveStart(context: RequestContext, body: RequestBody): Promise<void> {
    const { customer = '', isKeyless, req, res, settings } = context;
    // Requests without a key have no more slots than this in all.
    const release = uploads.take(customer, Math.ceil(settings.maxInFlight / 4));
    if (release === undefined) return refuse(context, refusals.TOO_MANY_UPLOADS);
    let fault: BodyFault | undefined;
    try {
      if ((isKeyless || context.admitted !== undefined) && expectsContinue(req)) res.writeContinue();
      fault = await body.buffer(context.startedAtMs + settings.requestTimeoutMs);
    } finally {
      release();
    }
    if (fault === undefined) {
      context.hasBodyStart = true;
      return isKeyless ? serve(context) : recheck(context);
    }
    if (fault !== 'aborted') return refuse(context, refusals.upstreamFailed(fault, undefined, isKeyless));
    giveBack(context, false);
    recorder.forwarded(context, NEVER_SENT);
  }

  /** Returns whether the quota has admitted the request. If not, sends and records the refusal. */
  function isAdmitted(context: RequestContext, decision: QuotaDecision): boolean {
    if (decision.outcome === 'admitted') {
      // Recorded when the request is forwarded: until then, its quota may have to be decided again.
      context.admitted = decision;
      return true;
    }
    recorder.decided(context, decision);
    if (decision.outcome === 'not_configured') refuseWithoutQuota(context, decision.reason);
    else refuse(context, refusals.limitExceeded(decision, clock.nowMs()));
    return false;
  }

  function refuseKey(context: RequestContext, { keyId, customer }: InvalidKey): undefined {
    // For operators only: the response does not depend on what is wrong with the key.
    if (keyId !== undefined) context.keyId = keyId;
    if (customer !== undefined) context.customer = customer;
    const { client, settings } = context;
    const retrySeconds =
      isDryRun || client.address === UNKNOWN_ADDRESS ? undefined : settings.failedKeys.count(client.address);
    if (retrySeconds === undefined) refuse(context, refusals.invalidKey(settings));
    else refuse(context, refusals.tooManyFailures(retrySeconds));
  }

  function refuseWithoutQuota(context: RequestContext, reason: string): undefined {
    recorder.limitMissing(context, reason);
    refuse(context, refusals.QUOTA_NOT_CONFIGURED);
  }

  /** Reads the customer's usage as the quota check counts it, or its history. Not counted, and needs no quota left. */
  async function readUsage(context: RequestContext, customer: CustomerRecord): Promise<void> {
    const limit = quota.limitOf(customer);
    if (!limit.found) return refuseWithoutQuota(context, limit.reason);
    const { matched: route, plan } = context;
    if (route?.purpose === 'usage_history') {
      context.usage = await route.history.of(customer);
    } else {
      const usage = await quota.recentUsage(customer, limit, context.known?.ceiling);
      const key = usage.key ? keyUsageDocument(usage.key) : null;
      context.usage = { customer: customer.id, plan, ...usageDocument(usage), key };
    }
    return recheck(context);
  }

  function sendUsage(context: RequestContext): undefined {
    sendJson(context, JSON.stringify(context.usage));
    recorder.responded(context);
  }

  function serve(context: RequestContext): undefined {
    // It may have begun while the request waited.
    const problem = closure(context);
    if (problem !== undefined) return refuse(context, problem);
    if (context.admitted !== undefined) recorder.decided(context, context.admitted);
    handlers.admitted(context);
  }

  /** Returns the quota headers of responses to counted requests, whether from the backend or a problem document. */
  function quotaHeaders<Headers>(form: Form<Headers>, { admitted }: RequestContext): Headers | undefined {
    if (admitted?.limits === undefined) return undefined;
    const { admission, burst, limits } = admitted;
    const states = mapAll(limits, (limit, index) => {
      const remaining = Math.max(0, admission.remaining(index));
      return { ...limit, remaining, resetSeconds: admission.resetSeconds(index) };
    });
    return rateLimitHeaders(form, states, burst, clock.nowMs());
  }

  /** Returns when the key expires, if that is soon enough to tell the client. */
  function expiryNotice({ known }: RequestContext): string | undefined {
    const expiresAtMs = known?.expiresAtMs;
    if (expiresAtMs === undefined || expiresAtMs - clock.nowMs() > EXPIRY_NOTICE_MS) return undefined;
    return new Date(expiresAtMs).toISOString();
  }

  function refuse(context: RequestContext, problem: Problem, outcome?: ForwardOutcome): undefined {
    giveBack(context, outcome?.wasSent ?? false);
    sendProblem(context, problem);
    recorder.refused(context, problem.code, outcome);
  }

  /** Handles an unexpected error: details go only to the log. The client gets a 500, or a truncated response. */
  function handleError(error: unknown, context: RequestContext): void {
    giveBack(context, true); // it may have been sent
    recorder.bug(error, context);
    if (context.res.headersSent) connections.abortResponse(context.res);
    else sendProblem(context, refusals.INTERNAL_ERROR);
  }

  function sendProblem(context: RequestContext, problem: Problem): void {
    const { headers = [] } = problem;
    const { life } = context;
    handlers.sendProblem(
      context,
      life === undefined ? problem : { ...problem, headers: [...headers, ...life.headers] },
    );
  }

  /** Handles what a step of a request has thrown, or its promise was rejected with. */
  function fail(error: unknown, context: RequestContext): void {
    if (error instanceof StoreUnavailableError) {
      recorder.undecided(context, error);
      refuse(context, refusals.STORE_UNAVAILABLE);
    } else {
      handleError(error, context);
    }
  }

  const handleExpressError: ErrorRequestHandler = (error, _req, res, _next) => {
    const context = res.locals.context as RequestContext | undefined;
    if (context !== undefined) return fail(error, context);
    recorder.bug(error, undefined);
    res.destroy();
  };

  /** Returns the application of a listener. `handle` may throw or reject. */
  function createApp(handle: (req: Request, res: Response) => Ending): Express {
    const app = createStrictApp();
    app.use(handle);
    app.use(handleExpressError);
    return app;
  }

  return { open, routeFor, decide, refuse, fail, giveBack, quotaHeaders, expiryNotice, handleError, createApp };
}
