import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../base/clock.ts';
import { Throttle } from '../../base/throttle.ts';
import { type AddressBlocks, peerAddress } from '../../formats/address-block.ts';
import type { Logger } from '../logger.ts';
import type { RequestTrace, TracedRequest } from './request-trace.ts';
import { newTraceId, parseTraceparent, randomnessOf } from './trace-context.ts';
import type { Tracer } from './tracer.ts';

/** The section `tracing` of a config has this shape. */
interface TracingSettings {
  /** URL of the collector. */
  readonly endpoint: string;
  /** Further headers for the collector, by name. Secret. */
  readonly exportHeaders: Readonly<Record<string, string>>;
  /** From 0 to 1. */
  readonly sampleRatio: number;
  /** Whether a trusted proxy decides for the requests that it traces. */
  readonly trustParent: boolean;
  /** Whether spans name the customer. */
  readonly customer: boolean;
}

interface TracingParts {
  readonly version: string;
  readonly instanceId: string;
  readonly spansDropped: (spans: number) => void;
  readonly logger: Pick<Logger, 'warn'>;
  readonly clock: Clock;
  /** Returns a number from 0 to below 1. */
  readonly random: () => number;
}

const WARN_EVERY_MS = 60_000;
/** Time to export what is pending when a reload changes the collector. */
const REPLACED_FLUSH_MS = 10_000;

/** Decides which requests are traced. Loads OpenTelemetry's packages only if a config asks for traces. */
export class Tracing {
  readonly #parts: TracingParts;
  readonly #warnings: Throttle;
  #config: TracingSettings | undefined;
  #tracer: Tracer | undefined;
  #unreportedSpans = 0;

  constructor(parts: TracingParts) {
    this.#parts = parts;
    this.#warnings = new Throttle(parts.clock, WARN_EVERY_MS, 1);
  }

  /** Applies a config from the next request on; undefined turns traces off. Or rejects, and nothing has changed. */
  async apply(config: TracingSettings | undefined): Promise<void> {
    const replaced = this.#tracer;
    const isSameTarget =
      config?.endpoint === this.#config?.endpoint &&
      isDeepStrictEqual(config?.exportHeaders, this.#config?.exportHeaders);
    if (!isSameTarget) this.#tracer = config && (await this.#open(config));
    this.#config = config;
    if (!isSameTarget) void replaced?.close(REPLACED_FLUSH_MS);
  }

  /** Returns the trace of a request, undefined if it is not sampled. Without a valid context, the request starts a trace. */
  sample(request: TracedRequest, trustedProxies: Pick<AddressBlocks, 'has'>): RequestTrace | undefined {
    if (this.#tracer === undefined || this.#config === undefined) return undefined;
    const { sampleRatio, trustParent, customer } = this.#config;
    const { headers, socket } = request.req;
    const parent = headers.traceparent === undefined ? undefined : parseTraceparent(headers.traceparent);
    const isTrusted = parent !== undefined && trustedProxies.has(peerAddress(socket));
    // A client that chose the randomness would have each of its requests traced, or none.
    const randomness = isTrusted ? randomnessOf(parent.traceId) : this.#parts.random();
    if (isTrusted && trustParent ? !parent.isSampled : randomness < 1 - sampleRatio) return undefined;
    return this.#tracer.start(request, parent ?? newTraceId(randomness), customer);
  }

  /** Exports what is pending, for at most `flushMs`. */
  async close(flushMs: number): Promise<void> {
    const tracer = this.#tracer;
    this.#tracer = undefined;
    await tracer?.close(flushMs);
  }

  async #open({ endpoint, exportHeaders }: TracingSettings): Promise<Tracer> {
    const { Tracer } = await import('./tracer.ts');
    const dropped = (spans: number, reason: string) => this.#dropped(spans, reason);
    return new Tracer({ ...this.#parts, endpoint, exportHeaders, dropped });
  }

  #dropped(spans: number, reason: string): void {
    this.#parts.spansDropped(spans);
    this.#unreportedSpans += spans;
    if (!this.#warnings.isDue('')) return;
    this.#parts.logger.warn(
      { spans: this.#unreportedSpans, reason },
      'trace spans are lost; requests are not affected',
    );
    this.#unreportedSpans = 0;
  }
}
