/**
 * Serves the check listener: another proxy, or code, asks whether it may serve a request of a client. The decision is that
 * of the public listener. Yes is 200 with the customer's identity; no is the problem document for the client.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Express, Request, Response } from 'express';
import { randomUuid } from '../../base/random-uuid.ts';
import { Throttle } from '../../base/throttle.ts';
import { addressBlock, canonicalAddress, peerAddress } from '../../formats/address-block.ts';
import { comparableName } from '../../formats/header-names.ts';
import { announcesBody } from '../../http/listener/connections.ts';
import { FailedAttempts } from '../../http/listener/failed-attempts.ts';
import { readBody } from '../../http/listener/held-body.ts';
import { type Problem, problemResponse } from '../../http/problems/document.ts';
import type { Logger } from '../../observability/logger.ts';
import { UNKNOWN_ADDRESS } from '../client-address.ts';
import { readCredentials, readToken } from '../credentials.ts';
import { createDecision, type DecisionParts, type Ending, expectsContinue } from '../decision.ts';
import { guardHeaders, guardTarget, isHost } from '../guard.ts';
import { asFlatList, type Form } from '../rate-limit-headers.ts';
import type { Recorder } from '../recorder.ts';
import * as refusals from '../refusals.ts';
import { type RequestContext, respond, sendJson, sendProblem } from '../request-context.ts';
import { sharesText } from '../request-ids.ts';
import type { Route } from '../routes.ts';
import type { PublicSettings } from '../settings.ts';
import { isMethod, parseCheckBody } from './check-body.ts';
import * as checkRefusals from './check-refusals.ts';
import { fieldsForClient, readRefusal, refusalHeader } from './refusal-header.ts';

export interface CheckSettings extends PublicSettings {
  /** SHA-256 of the token that each request must have. Undefined: none. */
  readonly tokenHash: Buffer | undefined;
  /** Of assertions; empty if there are none. */
  readonly audience: string;
  /** Undefined: no usage is served. */
  readonly usagePath: string | undefined;
}

interface CheckAppParts extends DecisionParts {
  /** Read once per request. */
  readonly settings: { readonly current: CheckSettings };
  readonly logger: Pick<Logger, 'warn'>;
}

const EXT_AUTHZ = '/ext-authz';
const CALL_METHODS: Readonly<Record<string, string>> = {
  '/forward-auth': 'GET, HEAD',
  '/nginx': 'GET, HEAD',
  '/refusal': 'GET, HEAD',
  '/usage': 'GET, HEAD',
  '/verify': 'POST',
};
const TOKEN = 'x-tollgate-check-token';
const OWN_HEADER = /^x.tollgate./i;
const ORIGINAL_URL = /^https?:\/\/([^/?#]+)(\/.*)$/;
const MAX_BODY_BYTES = 64 * 1024;
/** As for the admin token. */
const FAILED_TOKENS_PER_MINUTE = 30;
const MAX_LOGGED_ADDRESSES = 10_000;

/** For a key whose route is not asked for. */
const ANY_ROUTE: Route = {
  purpose: 'forward',
  maxBodyBytes: 0,
  template: 'none',
  shape: '',
  methods: new Set(),
  allow: '',
};

/** Returns the path of the call, without a query. */
function callOf({ originalUrl }: Pick<Request, 'originalUrl'>): string {
  return originalUrl.startsWith(`${EXT_AUTHZ}/`) ? EXT_AUTHZ : (originalUrl.split('?', 1)[0] ?? '');
}

/** Returns whether nginx asks, of whose requests the gateway sees a part only. */
export function isNginxCall(req: Pick<Request, 'originalUrl'>): boolean {
  return callOf(req) === '/nginx';
}

/** Returns the value of a header that is sent exactly once and is not empty. Names that equal it but for `_` do not count. */
function soleHeader(rawHeaders: readonly string[], lowerName: string): string | undefined {
  let found: string | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (name.length !== lowerName.length || name.toLowerCase() !== lowerName) continue;
    if (found !== undefined) return undefined;
    found = rawHeaders[i + 1] ?? '';
  }
  return found || undefined;
}

/** Returns whether a client may have sent a header that a backend takes for one of the gateway. */
function hasForgedHeader(rawHeaders: readonly string[]): boolean {
  return rawHeaders.some((name, i) => {
    if (i % 2 === 1 || !OWN_HEADER.test(name)) return false;
    const lower = name.toLowerCase();
    return lower !== TOKEN && comparableName(lower).startsWith('x-tollgate-');
  });
}

/** The target of `/nginx`: exactly one of the two headers. Undefined if it is not named by one. */
function nginxTarget(rawHeaders: readonly string[]): string | undefined {
  const names = rawHeaders.filter((name, i) => i % 2 === 0 && /^x-original-ur[il]$/i.test(name));
  const uri = soleHeader(rawHeaders, 'x-original-uri');
  if (names.length !== 1 || uri !== undefined) return names.length === 1 ? uri : undefined;
  const [, host = '', target] = ORIGINAL_URL.exec(soleHeader(rawHeaders, 'x-original-url') ?? '') ?? [];
  return isHost(host) ? target : undefined;
}

export function createCheckApp(parts: CheckAppParts): Express {
  const { clock, logger, quota, recorder } = parts;
  const failedTokens = new FailedAttempts(clock, FAILED_TOKENS_PER_MINUTE);
  const tokenWarnings = new Throttle(clock, 60_000, MAX_LOGGED_ADDRESSES);
  /** The requests to `/verify` with a valid body: from then on, a refusal is 200, too. */
  const understood = new WeakSet<RequestContext>();
  const decision = createDecision(parts, {
    ...handlersWith(recorder),
    // Requests in progress are not limited: the gateway does not see when one ends that it did not forward.
    decideQuota: (customer, units, ceiling) => quota.decide(customer, units, ceiling, false),
  });
  const dryRun = createDryRun();
  const { refuse } = decision;

  function createDryRun() {
    const silent: Recorder = {
      ...recorder,
      authenticated() {},
      keyHeader() {},
      sentByBrowser() {},
      decided() {},
      undecided() {},
      limitMissing() {},
      refused: recorder.dropped,
      checked: recorder.dropped,
    };
    return createDecision(
      { ...parts, keyUses: { note() {} }, recorder: silent },
      { ...handlersWith(silent), isDryRun: true, decideQuota: quota.preview.bind(quota) },
    );
  }

  function handle(req: Request, res: Response): Ending {
    const settings = parts.settings.current;
    const context = decision.open(req, res, settings);
    if (context === undefined) return undefined;
    const call = callOf(req);
    if (!hasToken(req.rawHeaders, settings)) return refuseToken(context, call);
    const headers = guardHeaders(req, settings.guardLimits, false);
    if (!headers.passed) return refuse(context, headers.problem);
    const allow = CALL_METHODS[call];
    if (call !== EXT_AUTHZ && allow === undefined) return refuse(context, checkRefusals.NO_SUCH_CALL);
    if (allow !== undefined && !allow.split(', ').includes(req.method)) {
      return refuse(context, refusals.methodNotAllowed(allow));
    }
    if (call !== '/refusal' && hasForgedHeader(req.rawHeaders)) return refuse(context, checkRefusals.FORGED_HEADER);
    context.audience = settings.audience;
    if (!context.client.isNamed) context.client = { ...context.client, address: UNKNOWN_ADDRESS };
    return announcesBody(req) || call === '/verify' ? receive(context, call) : decide(context, call);
  }

  function hasToken(rawHeaders: readonly string[], { tokenHash }: CheckSettings): boolean {
    if (tokenHash === undefined) return true;
    const token = soleHeader(rawHeaders, TOKEN);
    return token !== undefined && timingSafeEqual(hash('sha256', token, 'buffer'), tokenHash);
  }

  function refuseToken(context: RequestContext, call: string): undefined {
    const client = peerAddress(context.req.socket);
    const retrySeconds = failedTokens.count(client);
    if (tokenWarnings.isDue(addressBlock(client))) {
      logger.warn(
        { client, call: context.route },
        'a check is refused: X-Tollgate-Check-Token is missing, doubled or wrong',
      );
    }
    if (call !== '/verify' && call !== '/usage') return refuse(context, checkRefusals.CHECK_TOKEN);
    return refuse(
      context,
      retrySeconds === undefined ? checkRefusals.UNAUTHORIZED : refusals.tooManyFailures(retrySeconds),
    );
  }

  /** Reads the body, which only `/verify` has a use for. */
  async function receive(context: RequestContext, call: string): Promise<void> {
    const { req, res, settings } = context;
    if (expectsContinue(req)) res.writeContinue();
    const done = new AbortController();
    const body = await Promise.race([
      readBody(req, res, { limitBytes: MAX_BODY_BYTES, isKnown: true }),
      delay(settings.requestTimeoutMs, 'late' as const, { signal: done.signal }),
    ]);
    done.abort();
    if (body === 'late') return refuse(context, refusals.upstreamFailed('body_timeout', undefined));
    if (body === 'too_large') return refuse(context, refusals.bodyTooLarge(MAX_BODY_BYTES));
    if (typeof body === 'string') return refuse(context, refusals.upstreamFailed('body_malformed', undefined));
    return call === '/verify' ? verify(context, body) : decide(context, call);
  }

  function decide(context: RequestContext, call: string): Ending {
    const { req, settings } = context;
    const { rawHeaders } = req;
    switch (call) {
      case EXT_AUTHZ:
        return decideNamed(context, req.method, req.originalUrl.slice(EXT_AUTHZ.length));
      case '/forward-auth': {
        const method = soleHeader(rawHeaders, 'x-forwarded-method');
        return decideNamed(context, method, soleHeader(rawHeaders, 'x-forwarded-uri'));
      }
      case '/nginx':
        return decideNamed(context, soleHeader(rawHeaders, 'x-original-method'), nginxTarget(rawHeaders));
      case '/usage': {
        const { usagePath } = parts.settings.current;
        if (usagePath === undefined) return refuse(context, checkRefusals.USAGE_IS_ELSEWHERE);
        const query = req.originalUrl.slice(call.length);
        const route = decision.routeFor(context, usagePath, '', req.method);
        return route && decision.decide(context, readCredentials(rawHeaders, query, settings));
      }
      default:
        return sendRefusal(context);
    }
  }

  /** Decides a request by its method and its target, as the client sent them. */
  function decideNamed(context: RequestContext, method: string | undefined, target: string | undefined): Ending {
    if (method === undefined || !isMethod(method) || !target?.startsWith('/')) {
      return refuse(context, checkRefusals.NOT_NAMED);
    }
    context.method = method;
    const query = routeNamed(context, target);
    if (query === undefined) return undefined;
    return decision.decide(context, readCredentials(context.req.rawHeaders, query, context.settings));
  }

  /** Finds the route of a target and the context's method. Returns the query; undefined if the request was refused. */
  function routeNamed(
    context: RequestContext,
    target: string,
    { refuse, routeFor }: Pick<typeof decision, 'refuse' | 'routeFor'> = decision,
  ): string | undefined {
    const verdict = guardTarget(target, context.settings.guardLimits);
    if (!verdict.passed) {
      const { code, detail } = verdict.problem;
      // Without `Connection: close`: the connection is the proxy's, and the fault is in what it names.
      return refuse(context, { code, detail });
    }
    const route = routeFor(context, verdict.path, verdict.query, context.method);
    if (route === undefined) return undefined;
    return route.purpose === 'forward' ? verdict.query : refuse(context, checkRefusals.USAGE_IS_ELSEWHERE);
  }

  function verify(context: RequestContext, body: Buffer | undefined): Ending {
    const parsed = parseCheckBody(context.req.headers, body);
    if ('problem' in parsed) return refuse(context, parsed.problem);
    const { key, method = 'GET', path, address, isDryRun } = parsed;
    understood.add(context);
    // As for a key in a header: request ids are logged.
    if (sharesText(context.requestId, key)) context.requestId = randomUuid();
    context.method = method;
    context.client = {
      ...context.client,
      address: address === undefined ? UNKNOWN_ADDRESS : canonicalAddress(address),
    };
    const { decide, fail, ...chosen } = isDryRun ? dryRun : decision;
    if (path === undefined) context.matched = ANY_ROUTE;
    else if (routeNamed(context, path, chosen) === undefined) return undefined;
    // Not left to the application, which would record the failure of a dry run.
    return decide(context, readToken(key, context.settings))?.catch((error: unknown) => fail(error, context));
  }

  /** Sends what a refusal of `/nginx` holds, for the client. */
  function sendRefusal(context: RequestContext): undefined {
    const refusal = readRefusal(soleHeader(context.req.rawHeaders, 'x-tollgate-refusal'));
    if (refusal === undefined) sendProblem(context, refusals.overloaded(false));
    else respond(context, refusal.status, refusal.headers, refusal.body);
    // The request was recorded as it was refused.
    recorder.dropped(context);
  }

  function handlersWith({ checked }: Recorder) {
    return {
      admitted(context: RequestContext): undefined {
        if (callOf(context.req) === '/verify') sendVerified(context);
        else sendAdmitted(context);
        checked(context);
        // A request without a key holds its slot no longer than the check takes.
        decision.giveBack(context, true);
      },
      sendProblem(context: RequestContext, problem: Problem): void {
        const call = callOf(context.req);
        const { requestId, settings } = context;
        if (call === '/nginx' && problem.code !== 'check_token') {
          // Such as of a connection above the limit.
          if (problem.headers?.includes('Connection')) context.res.shouldKeepAlive = false;
          const refusal = refusalHeader(problem, requestId, settings.documentationUrl);
          respond(context, 403, ['X-Request-Id', requestId, ...NO_CONTENT, ...refusal], '');
          return;
        }
        const { status, headers, body } = problemResponse(problem, requestId, settings.documentationUrl);
        const isDecided = status < 500 || problem.code === 'maintenance';
        if (!understood.has(context) || !isDecided) respond(context, status, headers, body);
        else sendJson(context, `{"allowed":false,"problem":${body}}`, fieldsForClient(problem.headers ?? []));
      },
    };
  }

  function sendAdmitted(context: RequestContext): void {
    const { requestId, settings, customer = '', plan, keyId = '', assertion = '' } = context;
    const isShown = settings.identityHeaders && customer !== '';
    const expiry = decision.expiryNotice(context);
    const headers = [
      'X-Request-Id',
      requestId,
      ...NO_CONTENT,
      'X-Tollgate-Customer',
      isShown ? customer : '',
      'X-Tollgate-Plan',
      isShown ? plan : '',
      'X-Tollgate-Key-Id',
      isShown ? keyId : '',
      'X-Tollgate-Assertion',
      assertion,
      ...(decision.quotaHeaders(asFlatList, context) ?? []),
      ...(context.life?.headers ?? []),
      ...(expiry === undefined ? [] : ['X-Api-Key-Expires-At', expiry]),
    ];
    respond(context, 200, headers, '');
  }

  function sendVerified(context: RequestContext): void {
    const { assertion, customer, keyId, known, plan } = context;
    const document = {
      allowed: true,
      customer: customer ?? null,
      plan: customer === undefined ? null : plan,
      key_id: keyId ?? null,
      scopes: known?.key.scopes ?? null,
      ...(decision.quotaHeaders(asMembers, context) ?? { limit: null, remaining: null, reset_seconds: null }),
      assertion,
    };
    const headers = [...(decision.quotaHeaders(asFlatList, context) ?? []), ...(context.life?.headers ?? [])];
    sendJson(context, JSON.stringify(document), headers);
  }

  const asMembers: Form<object> = (_policies, _states, limit, remaining, resetAt) => {
    return { limit, remaining, reset_seconds: Math.max(1, resetAt - Math.ceil(clock.nowMs() / 1000)) };
  };

  return decision.createApp(handle);
}

const NO_CONTENT = ['Cache-Control', 'no-store', 'Content-Length', '0'];
