import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Backend } from './backend.ts';
import type { UpstreamFailure } from './failures.ts';
import type { RequestBody } from './request-body.ts';
import type { Upstream } from './upstream.ts';

export type UpstreamName = Pick<Upstream, 'backend' | 'url' | 'authority'>;

/** Where a request is sent, and how long its response may take. */
export interface Destination {
  readonly backend: Pick<Backend, 'choose' | 'chooseOther' | 'countRequest' | 'mayRetry'>;
  /** For each attempt, from the last byte of the request to the head of the response. */
  readonly responseTimeoutMs: number;
  /** Between two bytes of the response. Not while the client reads too slowly, which `limits.response_stall_timeout_ms` watches. */
  readonly idleTimeoutMs: number;
  /**
   * From the last byte of the request to that of the response, including the wait for a connection and a slow client.
   * Undefined: as long as both sides progress.
   */
  readonly totalTimeoutMs?: number | undefined;
}

/** Observes the attempts to send one request. */
export interface AttemptTrace {
  /** Value of the header that names the current attempt to the upstream. */
  readonly traceparent: string;
  /** A connection to `upstream` is requested; again, if the request was not written to the first one. */
  attemptStarted(upstream: UpstreamName): void;
  /** The response is complete, or the attempt has failed. `status`: undefined without a head of a response. */
  attemptEnded(status: number | undefined, error: UpstreamFailure | undefined): void;
}

/** A request to send upstream, whose response is streamed into `res`. */
export interface ForwardRequest {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** The customer whose share of the connections the request uses. */
  readonly customer: string | undefined;
  /** Instead of a customer, if the request has no key: the address block whose share it uses. */
  readonly keylessBlock?: string | undefined;
  /** Path and query in origin form, validated by the guard. Sent unchanged after the base path of the upstream. */
  readonly path: string;
  /** Value of Host; undefined: the upstream's authority. */
  readonly host: string | undefined;
  /** All other headers to send, as `headerLine` returns each. */
  readonly headers: string;
  /** Finds header lines of the response, each with the CRLF before it, that `responseLines` replaces for this request alone. */
  readonly replacedLines?: RegExp | undefined;
  /** Its framing is announced in `headers`. Undefined: the request has none. */
  readonly body: RequestBody | undefined;
  /** Undefined: the request is not sampled. */
  readonly trace?: AttemptTrace | undefined;
  /** Monotonic ms from which on the request must not be sent upstream. */
  readonly beginDeadlineMs: number;
  /** The same deadline as wall time: the monotonic clock may stop while the machine is suspended. */
  readonly beginDeadlineWallMs: number;
}

/** What the receiver of the outcomes does with each request: the same object for all of them. */
export interface ForwardHandlers<Request extends ForwardRequest> {
  /**
   * Returns the gateway's response headers, as `headerLine` returns each; called when the head of the response has
   * arrived. Their names must be in the forwarder's `ownHeaderNames` or match `replacedLines`, so that none of them occurs
   * twice, unless it is a list.
   */
  responseLines(request: Request): string;
  /**
   * Called once, when the request has ended. With `failed`, the receiver must respond to the client or, with
   * `headSent`, close its connection so that the client notices the truncation.
   */
  onOutcome(request: Request, outcome: ForwardOutcome): void;
  /** Called once on a bug: instead of `onOutcome`, or after it threw. The receiver must respond or close as well. */
  onBug(request: Request, error: unknown): void;
}

interface ForwardFacts {
  /** Whether the upstream may have got the first byte of the request. If false, the quota unit may be refunded. */
  readonly wasSent: boolean;
  /** Status of the upstream's response; undefined if no valid head arrived. */
  readonly status: number | undefined;
  /** From the first sending of the request to the last byte of the response, or its failure; 0 if it was never sent. */
  readonly upstreamMs: number;
  /** Authority and base path of the upstream that was chosen last; undefined if none was. */
  readonly upstream: string | undefined;
  /** Body bytes received from the upstream. */
  readonly contentBytes: number;
}

export type ForwardOutcome =
  /** The response was relayed completely. */
  | (ForwardFacts & { readonly kind: 'completed'; readonly status: number })
  /** The client closed its connection first; the upstream request was aborted. */
  | (ForwardFacts & { readonly kind: 'client_gone' })
  | (ForwardFacts & {
      readonly kind: 'failed';
      readonly failure: UpstreamFailure;
      /** False: nothing was written to the client. True: its response is truncated. */
      readonly headSent: boolean;
      /** The underlying error, for the log only. */
      readonly cause: Error;
    });
