/**
 * Serves the public API: checks each request in the order of decision.ts, then forwards it to the backend. A request that
 * fails a check never reaches the backend.
 */
import type { Express, Request, Response } from 'express';
import type { Connections } from '../http/listener/connections.ts';
import type { ForwardHandlers } from '../upstream/forward-request.ts';
import type { Forwarder } from '../upstream/forwarder.ts';
import { headerLineOf, KEYLESS_POLICY, passedHeaders } from '../upstream/request-headers.ts';
import { hasGeneratedKey, readCredentials } from './credentials.ts';
import { createDecision, type DecisionParts, type Ending } from './decision.ts';
import { guard } from './guard.ts';
import { removeKeys } from './keyless.ts';
import { asFlatList, asLines } from './rate-limit-headers.ts';
import * as refusals from './refusals.ts';
import { type RequestContext, sendProblem } from './request-context.ts';
import type { PublicSettings } from './settings.ts';

export interface PublicAppParts extends DecisionParts {
  /** Read once per request. */
  readonly settings: { readonly current: PublicSettings };
  readonly forwarder: Forwarder;
  readonly connections: Pick<Connections, 'abortResponse' | 'closeReasonOf' | 'isSurplus' | 'overloadDelayMs'>;
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

/** The headers that only the gateway sends, to the backend or to the client. */
const ownLines = {
  requestId: headerLineOf('X-Request-Id'),
  expiresAt: headerLineOf('X-Api-Key-Expires-At'),
  customer: headerLineOf('X-Tollgate-Customer'),
  plan: headerLineOf('X-Tollgate-Plan'),
  keyId: headerLineOf('X-Tollgate-Key-Id'),
  assertion: headerLineOf('X-Tollgate-Assertion'),
  forwardedFor: headerLineOf('X-Forwarded-For'),
  forwardedProto: headerLineOf('X-Forwarded-Proto'),
  forwardedHost: headerLineOf('X-Forwarded-Host'),
  transferEncoding: headerLineOf('Transfer-Encoding'),
  contentLength: headerLineOf('Content-Length'),
  via: headerLineOf('Via'),
};

export function createPublicApp(parts: PublicAppParts): Express {
  const { connections, forwarder, recorder } = parts;
  const decision = createDecision(parts, {
    admitted: forward,
    sendProblem(context, problem) {
      const delayMs = problem.code === 'overloaded' ? connections.overloadDelayMs(context.req.socket) : 0;
      if (delayMs === 0) sendProblem(context, problem);
      else setTimeout(sendProblem, delayMs, context, problem);
    },
  });
  const { giveBack, handleError, quotaHeaders, refuse } = decision;

  function handle(req: Request, res: Response): Ending {
    const settings = parts.settings.current;
    const context = decision.open(req, res, settings);
    if (context === undefined) return undefined;
    const verdict = guard(req, settings.guardLimits);
    if (!verdict.passed) return refuse(context, verdict.problem);
    const route = decision.routeFor(context, verdict.path, verdict.query, req.method);
    if (route === undefined) return undefined;
    if (route.purpose === 'forward' && route.destination !== undefined) {
      const { destination } = route;
      const { backend } = destination;
      context.destination = destination;
      context.audience = destination.audience;
      if (!backend.began(context.startedAtMs)) {
        recorder.backendOverloaded(backend.name);
        return refuse(context, refusals.BACKEND_OVERLOADED);
      }
    }
    const maxBodyBytes = route.purpose === 'forward' ? route.maxBodyBytes : 0;
    const { isChunked, length = 0 } = verdict.body;
    if (length > maxBodyBytes) return refuse(context, refusals.bodyTooLarge(maxBodyBytes));
    if (isChunked || length > 0) {
      const limits = { maxBytes: maxBodyBytes, stallTimeoutMs: settings.bodyStallTimeoutMs };
      context.body = forwarder.receive(req, isChunked ? undefined : length, limits);
    }
    context.passed = verdict;
    return decision.decide(context, readCredentials(req.rawHeaders, verdict.query, settings));
  }

  function forward(context: RequestContext): undefined {
    const { destination, isKeyless, req, passed, trace } = context;
    if (destination === undefined) throw new Error('a request without a backend was admitted');
    if (destination.headers.preserveHost && passed?.host !== '') context.host = passed?.host;
    const rawHeaders = trace === undefined ? req.rawHeaders : trace.passedHeaders();
    const policy = isKeyless ? KEYLESS_POLICY : destination.headers;
    context.headers = passedHeaders(rawHeaders, policy, recorder.spoofed) + ownRequestHeaders(context);
    if (isKeyless) removeKeys(context);
    forwarder.forward(context, destination, handlers);
  }

  const handlers: ForwardHandlers<RequestContext> = {
    responseLines(context) {
      const { life, requestId } = context;
      const lines = (quotaHeaders(asLines, context) ?? '') + (life?.lines ?? '') + ownLines.requestId(requestId);
      const expiry = decision.expiryNotice(context);
      return expiry === undefined ? lines : lines + ownLines.expiresAt(expiry);
    },
    onOutcome(context, outcome) {
      if (outcome.kind === 'failed' && !outcome.headSent) {
        const headers = outcome.wasSent ? (quotaHeaders(asFlatList, context) ?? []) : undefined;
        refuse(context, refusals.upstreamFailed(outcome.failure, headers, context.isKeyless), outcome);
        return;
      }
      giveBack(context, outcome.wasSent);
      if (outcome.kind === 'failed') connections.abortResponse(context.res);
      recorder.forwarded(context, outcome, connections.closeReasonOf(context.req.socket));
    },
    onBug: (context, error) => handleError(error, context),
  };

  /** Returns the headers that only the gateway sends to the backend. */
  function ownRequestHeaders(context: RequestContext): string {
    const { assertion, client, customer = '', isKeyless, keyId = '', passed, plan, req, requestId, settings } = context;
    let lines = ownLines.requestId(requestId);
    if (settings.identityHeaders && !isKeyless) {
      lines += ownLines.customer(customer) + ownLines.plan(plan) + ownLines.keyId(keyId);
    }
    if (assertion !== undefined) lines += ownLines.assertion(assertion);
    // A key in it, which would remove it, must not hide the client's address from the backend.
    const hasKey = isKeyless && hasGeneratedKey(client.forwardedFor);
    lines += ownLines.forwardedFor(hasKey ? client.address : client.forwardedFor);
    lines += ownLines.forwardedProto(client.proto);
    const forwardedHost = client.host ?? passed?.host ?? '';
    if (forwardedHost !== '') lines += ownLines.forwardedHost(forwardedHost);
    if (passed?.body.isChunked) lines += ownLines.transferEncoding('chunked');
    else if (passed?.body.length !== undefined) lines += ownLines.contentLength(String(passed.body.length));
    return lines + ownLines.via(req.httpVersion === '1.1' ? '1.1 tollgate' : '1.0 tollgate');
  }

  return decision.createApp(handle);
}
