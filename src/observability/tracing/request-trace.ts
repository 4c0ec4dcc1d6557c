/**
 * The spans of one sampled request, by OpenTelemetry's semantic conventions for HTTP. No attribute holds text that a client
 * chose: where the conventions ask for a path, there is the route's template.
 */
import type { IncomingMessage } from 'node:http';
import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import * as names from '@opentelemetry/semantic-conventions';
import type { Clock } from '../../base/clock.ts';
import { hostOf } from '../../formats/host.ts';
import type { AttemptTrace, ForwardOutcome, UpstreamName } from '../../upstream/forward-request.ts';
import type { AccessRecord } from '../access-log.ts';

interface RequestTraceOptions {
  readonly tracer: Tracer;
  readonly clock: Clock;
  readonly withCustomer: boolean;
  /** `ROOT_CONTEXT` if the trace starts here. */
  readonly parent: Context;
}

export interface TracedRequest {
  readonly req: Pick<IncomingMessage, 'headers' | 'httpVersion' | 'rawHeaders' | 'socket'>;
  /** As the client sent it. */
  readonly method: string;
  readonly client: { readonly proto: string };
  /** Until a route matches, `none`. */
  readonly route: string;
}

/** Methods that have their own name in spans; others are `_OTHER`. */
const KNOWN_METHODS: ReadonlySet<string> = new Set(['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT']);

/** `url.path` of a request without a route: the conventions require a value, and the path may hold a key. */
const REDACTED = 'REDACTED';

export class RequestTrace implements AttemptTrace {
  readonly #request: TracedRequest;
  readonly #options: RequestTraceOptions;
  /** What to add to monotonic ms for wall time: one offset, so that the spans are consistent. */
  readonly #wallOffsetMs: number;
  readonly #server: Span;
  readonly #context: Context;
  #attempt: Span | undefined;
  #attempts = 0;

  constructor(request: TracedRequest, options: RequestTraceOptions) {
    const { tracer, clock, parent } = options;
    this.#request = request;
    this.#options = options;
    this.#wallOffsetMs = clock.nowMs() - clock.monotonicMs();
    this.#server = tracer.startSpan('HTTP', { kind: SpanKind.SERVER, startTime: this.#nowMs() }, parent);
    this.#context = trace.setSpan(parent, this.#server);
  }

  get traceId(): string {
    return this.#server.spanContext().traceId;
  }

  get traceparent(): string {
    const { traceId, spanId } = (this.#attempt ?? this.#server).spanContext();
    return `00-${traceId}-${spanId}-01`;
  }

  /**
   * Returns the headers of the request (name, value, …) without `traceparent`, which each attempt replaces. Without a valid
   * one, `tracestate` is dropped too (W3C Trace Context §3.3).
   */
  passedHeaders(): string[] {
    const { rawHeaders } = this.#request.req;
    const isReplaced = (name = ''): boolean => {
      const lower = name.toLowerCase();
      return lower === 'traceparent' || (lower === 'tracestate' && this.#options.parent === ROOT_CONTEXT);
    };
    return rawHeaders.filter((_, index) => !isReplaced(rawHeaders[index - (index % 2)]));
  }

  attemptStarted(upstream: UpstreamName): void {
    const { method: sent, route } = this.#request;
    const attributes = {
      ...destinationOf(upstream, route),
      [names.ATTR_NETWORK_PROTOCOL_VERSION]: '1.1',
      'tollgate.backend': upstream.backend,
    };
    if (this.#attempt !== undefined) {
      // The kept connection closed before the request was written to it: the attempt goes on.
      this.#attempt.setAttributes(attributes);
      return;
    }
    const { name, ...method } = methodOf(sent);
    this.#attempt = this.#options.tracer.startSpan(
      name,
      { kind: SpanKind.CLIENT, startTime: this.#nowMs(), attributes: { ...method, ...attributes } },
      this.#context,
    );
    if (this.#attempts > 0) this.#attempt.setAttribute(names.ATTR_HTTP_REQUEST_RESEND_COUNT, this.#attempts);
    this.#attempts++;
  }

  attemptEnded(status: number | undefined, error: string | undefined): void {
    if (this.#attempt === undefined) return;
    if (status !== undefined) this.#attempt.setAttribute(names.ATTR_HTTP_RESPONSE_STATUS_CODE, status);
    this.#end(this.#attempt, error ?? (status !== undefined && status >= 400 ? String(status) : undefined));
    this.#attempt = undefined;
  }

  /** Called once, when the request is recorded. */
  end(record: AccessRecord, outcome: ForwardOutcome | undefined): void {
    const { req, client, method: sent, route } = this.#request;
    const { status, problem, plan, quota, customer, backend } = record;
    const { name, ...method } = methodOf(sent);
    const hasRoute = route !== 'none';
    const error = serverError(record, outcome);
    this.attemptEnded(outcome?.status, error);
    this.#server.updateName(hasRoute ? `${name} ${route}` : name);
    this.#server.setAttributes({
      ...method,
      [names.ATTR_URL_SCHEME]: client.proto,
      [names.ATTR_URL_PATH]: hasRoute ? route : REDACTED,
      [names.ATTR_HTTP_ROUTE]: hasRoute ? route : undefined,
      [names.ATTR_NETWORK_PROTOCOL_VERSION]: req.httpVersion,
      // A client that left before the response had a head got no status.
      [names.ATTR_HTTP_RESPONSE_STATUS_CODE]: outcome?.kind === 'client_gone' ? outcome.status : status,
      'tollgate.plan': plan === 'none' ? undefined : plan,
      'tollgate.refusal': problem,
      'tollgate.backend': backend,
      'tollgate.quota.mode': quota,
      'tollgate.customer': this.#options.withCustomer ? customer : undefined,
    });
    this.#end(this.#server, error);
  }

  #nowMs(): number {
    return this.#wallOffsetMs + this.#options.clock.monotonicMs();
  }

  #end(span: Span, error: string | undefined): void {
    if (error !== undefined) span.setAttribute(names.ATTR_ERROR_TYPE, error).setStatus({ code: SpanStatusCode.ERROR });
    span.end(this.#nowMs());
  }
}

/** Returns `error.type` of the server span. A status of 4xx is no error of a server. */
function serverError({ problem, status, isAborted }: AccessRecord, outcome?: ForwardOutcome): string | undefined {
  if (problem !== undefined) return status >= 500 || isAborted ? problem : undefined;
  if (outcome?.kind === 'client_gone') return 'client_closed_request';
  if (outcome?.kind === 'failed') return outcome.failure;
  return status >= 500 ? String(status) : undefined;
}

/** Returns the name of a method for spans, and its attributes. */
function methodOf(method: string) {
  if (KNOWN_METHODS.has(method)) return { name: method, [names.ATTR_HTTP_REQUEST_METHOD]: method };
  return {
    name: 'HTTP',
    [names.ATTR_HTTP_REQUEST_METHOD]: names.HTTP_REQUEST_METHOD_VALUE_OTHER,
    // A token of at most 32 characters.
    [names.ATTR_HTTP_REQUEST_METHOD_ORIGINAL]: method,
  };
}

function destinationOf({ url, authority }: UpstreamName, route: string): Attributes {
  if (url.startsWith('unix:')) {
    return {
      [names.ATTR_URL_FULL]: `http://${authority}${route}`,
      [names.ATTR_SERVER_ADDRESS]: url.slice('unix:'.length),
      [names.ATTR_NETWORK_TRANSPORT]: names.NETWORK_TRANSPORT_VALUE_UNIX,
    };
  }
  const parsed = new URL(url);
  return {
    [names.ATTR_URL_FULL]: url + route,
    [names.ATTR_SERVER_ADDRESS]: hostOf(parsed),
    [names.ATTR_SERVER_PORT]: Number(parsed.port) || (parsed.protocol === 'https:' ? 443 : 80),
  };
}
