import type { Request, Response } from 'express';
import type { KnownKey } from '../customers/keys/authenticator.ts';
import type { QuotaDecision } from '../customers/quota/customer-quota.ts';
import type { QuotaMode } from '../customers/quota/hourly-quota.ts';
import type { CeilingOfKey } from '../customers/quota/key-ceiling.ts';
import { announcesBody } from '../http/listener/connections.ts';
import { type Problem, problemResponse } from '../http/problems/document.ts';
import type { RequestTrace } from '../observability/tracing/request-trace.ts';
import { parseTraceparent } from '../observability/tracing/trace-context.ts';
import type { CustomerRecord } from '../store/record-fields.ts';
import type { ForwardRequest } from '../upstream/forward-request.ts';
import type { RequestBody } from '../upstream/request-body.ts';
import { type Client, identifyClient } from './client-address.ts';
import type { PassedRequest } from './guard.ts';
import { chooseRequestId } from './request-ids.ts';
import type { RouteLife } from './route-life.ts';
import type { Route, RouteDestination } from './routes.ts';
import type { PublicSettings } from './settings.ts';

export type AdmittedDecision = Extract<QuotaDecision, { outcome: 'admitted' }>;

/** The state of one request in the gateway: what its response, metrics and log line need, and what is sent upstream. */
export class RequestContext implements ForwardRequest {
  readonly req: Request;
  readonly res: Response;
  /** The settings that were current when the request arrived. */
  readonly settings: PublicSettings;
  requestId: string;
  /** Monotonic ms. */
  readonly startedAtMs: number;
  client: Client;
  /** As the client sent it. */
  method: string;
  /** A configured name. `none` before the customer is known, `unknown` if the config lacks the customer's plan. */
  plan = 'none';
  customer: string | undefined;
  keyId: string | undefined;
  /** The configured name of the header that holds the key; undefined until a key was read. */
  keyHeader: string | undefined;
  /** The valid key of the request. */
  known: KnownKey | undefined;
  /** How the hourly quota was decided; undefined if it was not. */
  quota: QuotaMode | undefined;
  /** Whether the plan's shadow limit would have admitted the request. */
  shadow: AdmittedDecision['shadow'];
  /** Undefined unless the quota has admitted the request, and once its slot was given back. */
  admitted: AdmittedDecision | undefined;
  /** The address block of a request whose route needs no key; undefined for all others. */
  keylessBlock: string | undefined;
  /** Gives back the slot of such a request; undefined before it has one, and once it was given back. */
  releaseKeyless: (() => void) | undefined;
  /** The record by which the quota was decided, and the limit of the key. */
  decidedFor: CustomerRecord | undefined;
  decidedUnder: CeilingOfKey;
  /** The response to a request for the customer's usage; undefined until it was read. */
  usage: object | undefined;
  path = '';
  /** Undefined: the upstream's authority. */
  host: string | undefined;
  headers = '';
  /** Claim `aud` of the assertion. */
  audience = '';
  /** The signed assertion of the customer's identity, if the backend gets one. */
  assertion: string | undefined;
  /** The plan that it states. */
  assertedPlan: string | undefined;
  /** What the guard has read from the request; undefined until then. */
  passed: PassedRequest | undefined;
  matched: Route | undefined;
  /** Set while the request counts as one of its backend; undefined if the gateway itself responds. */
  destination: RouteDestination | undefined;
  body: RequestBody | undefined;
  /** The beginning of the body is buffered. */
  hasBodyStart = false;
  /** Undefined: the request is not sampled. */
  readonly trace: RequestTrace | undefined;
  /** The end of the request is recorded: it no longer counts as in flight. */
  isRecorded = false;

  constructor(req: Request, res: Response, settings: PublicSettings, startedAtMs: number) {
    this.req = req;
    this.res = res;
    this.settings = settings;
    this.requestId = chooseRequestId(req.headers['x-request-id'], req.rawHeaders, settings.keyHeaders);
    this.startedAtMs = startedAtMs;
    this.client = identifyClient(req, settings);
    this.method = req.method;
    this.trace = settings.tracing?.sample(this, settings.trustedProxies);
  }

  /** The request is decided without a key, because its route needs none. */
  get isKeyless(): boolean {
    return this.keylessBlock !== undefined;
  }

  /** The matched route's template, or `none`. */
  get route(): string {
    return this.matched?.template ?? 'none';
  }

  /** That the request takes from every limit. */
  get units(): number {
    return this.matched?.purpose === 'forward' ? (this.matched.units ?? 1) : 1;
  }

  get life(): RouteLife | undefined {
    return this.matched?.purpose === 'forward' ? this.matched.life : undefined;
  }

  get replacedLines(): RegExp | undefined {
    return this.life?.replaced;
  }

  /** The trace that the request belongs to, whether it is sampled or not. */
  get traceId(): string | undefined {
    return this.trace?.traceId ?? parseTraceparent(this.req.headers.traceparent)?.traceId;
  }

  get beginDeadlineMs(): number {
    return this.admitted?.admission.beginDeadlineMs ?? this.#unmeteredDeadlineMs;
  }

  get beginDeadlineWallMs(): number {
    return this.admitted?.admission.beginDeadlineWallMs ?? this.#unmeteredDeadlineMs;
  }

  /** Without quota, only a request that needs no key, and has a slot, is ever sent. */
  get #unmeteredDeadlineMs(): number {
    return this.releaseKeyless === undefined ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  }
}

/** Sends a problem document as the complete response (RFC 9457). */
export function sendProblem(context: RequestContext, problem: Problem): void {
  const { requestId, settings } = context;
  const { status, headers, body } = problemResponse(problem, requestId, settings.documentationUrl);
  respond(context, status, headers, body);
}

/** Sends a JSON document as the complete response. `headers`: further ones (name, value, …). */
export function sendJson(context: RequestContext, body: string, headers: readonly string[] = []): void {
  const length = String(Buffer.byteLength(body));
  const own = ['X-Request-Id', context.requestId, 'Content-Type', 'application/json', 'Content-Length', length];
  // It is about one customer, so caches must not store it.
  respond(context, 200, [...own, 'Cache-Control', 'no-store', ...headers], body);
}

/** Sends a complete response; to HEAD, only its headers. `headers`: flat (name, value, …). */
export function respond(context: RequestContext, status: number, headers: readonly string[], body: string): void {
  const { req, res } = context;
  // The rest of the body is not read: what follows it on the connection is never seen.
  if (!req.complete && announcesBody(req)) res.shouldKeepAlive = false;
  res.writeHead(status, headers as string[]);
  setImmediate(end, context, body);
}

/** Called at the end of the event loop turn, for all responses of that turn: clients are woken up less often. */
function end({ req, res }: RequestContext, body: string): void {
  res.end(req.method === 'HEAD' ? undefined : body);
}
