/** Exports spans by OTLP over HTTP. Loads OpenTelemetry's packages: import it only where traces are configured. */
import { randomBytes } from 'node:crypto';
import http, { type ClientRequest } from 'node:http';
import https from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { ROOT_CONTEXT, TraceFlags, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources';
import { AlwaysOnSampler, BatchSpanProcessor, type ReadableSpan, TracerProvider } from '@opentelemetry/sdk-trace';
import * as names from '@opentelemetry/semantic-conventions';
import { boundResponse } from '../../base/bounded-response.ts';
import type { Clock } from '../../base/clock.ts';
import { RequestTrace, type TracedRequest } from './request-trace.ts';
import type { TraceContext } from './trace-context.ts';

interface TracerOptions {
  readonly endpoint: string;
  readonly exportHeaders: Readonly<Record<string, string>>;
  readonly version: string;
  readonly instanceId: string;
  /** Called when spans will not be exported. */
  readonly dropped: (spans: number, reason: string) => void;
  readonly clock: Clock;
}

/** A batch is serialized in one turn of the event loop: 2 ms for so many spans. */
const BATCH_SPANS = 256;
/** Spans that wait or are being exported, about 1 KB each. */
const MAX_PENDING_SPANS = 4096;
const BATCH_DELAY_MS = 1000;
/** For one batch, with all retries. */
const EXPORT_TIMEOUT_MS = 10_000;
const MAX_RESPONSE_BYTES = 65_536;

/** Node.js calls it for each request, but its types lack it. */
type HttpAgent = http.Agent & { addRequest(request: ClientRequest, options: unknown): void };

export class Tracer {
  readonly #options: TracerOptions;
  readonly #provider: TracerProvider;
  readonly #exporter: OTLPTraceExporter;
  readonly #batches: BatchSpanProcessor;
  #nextTraceId = '';
  #pendingSpans = 0;
  #isClosed = false;

  constructor(options: TracerOptions) {
    const { endpoint, exportHeaders, version, instanceId } = options;
    this.#options = options;
    this.#exporter = new OTLPTraceExporter({
      url: endpoint,
      headers: { ...exportHeaders },
      timeoutMillis: EXPORT_TIMEOUT_MS,
      httpAgentOptions: createAgent,
      userAgent: `tollgate/${version}`,
    });
    this.#batches = new BatchSpanProcessor({
      exporter: {
        export: (spans, done) =>
          this.#exporter.export(spans, (result) => {
            this.#settled(spans.length, result.error);
            done(result);
          }),
        shutdown: () => this.#exporter.shutdown(),
      },
      maxExportBatchSize: BATCH_SPANS,
      maxQueueSize: MAX_PENDING_SPANS,
      scheduledDelayMillis: BATCH_DELAY_MS,
    });
    this.#provider = new TracerProvider({
      sampler: new AlwaysOnSampler(),
      idGenerator: {
        generateTraceId: () => this.#nextTraceId,
        generateSpanId: () => randomBytes(8).toString('hex'),
      },
      resource: defaultResource().merge(
        resourceFromAttributes({
          [names.ATTR_SERVICE_NAME]: 'tollgate',
          [names.ATTR_SERVICE_VERSION]: version,
          [names.ATTR_SERVICE_INSTANCE_ID]: instanceId,
        }),
      ),
      spanProcessors: [
        {
          onStart() {},
          onEnd: (span) => this.#ended(span),
          forceFlush: () => this.#batches.forceFlush(),
          shutdown: () => this.#batches.shutdown(),
        },
      ],
    });
  }

  /** `origin`: the context received, or the id of a new trace. */
  start(request: TracedRequest, origin: TraceContext | string, withCustomer: boolean): RequestTrace {
    const tracer = this.#provider.getTracer('tollgate', this.#options.version);
    const { clock } = this.#options;
    let parent = ROOT_CONTEXT;
    if (typeof origin === 'string') this.#nextTraceId = origin;
    else {
      const { traceId, parentId } = origin;
      const remote = { traceId, spanId: parentId, traceFlags: TraceFlags.SAMPLED, isRemote: true };
      parent = trace.setSpanContext(ROOT_CONTEXT, remote);
    }
    return new RequestTrace(request, { tracer, clock, withCustomer, parent });
  }

  /** Exports what is pending, for at most `flushMs`. */
  async close(flushMs: number): Promise<void> {
    const flushed = new AbortController();
    const timeout = sleep(flushMs, undefined, { signal: flushed.signal }).catch(() => {});
    await Promise.race([this.#batches.shutdown().catch(() => {}), timeout]);
    flushed.abort();
    this.#isClosed = true;
    if (this.#pendingSpans > 0) this.#options.dropped(this.#pendingSpans, 'the collector did not take them in time');
  }

  #ended(span: ReadableSpan): void {
    if (this.#isClosed) this.#options.dropped(1, 'the request ended after the change of the collector');
    else if (this.#pendingSpans >= MAX_PENDING_SPANS) this.#options.dropped(1, 'the collector is too slow');
    else {
      this.#pendingSpans++;
      this.#batches.onEnd(span);
    }
  }

  #settled(spans: number, error: Error | undefined): void {
    if (this.#isClosed) return;
    this.#pendingSpans -= spans;
    if (error) this.#options.dropped(spans, `the export failed: ${error.message}`);
  }
}

/**
 * Creates an agent that bounds each response. The exporter itself allows 4 MiB of content in pieces of any size, any number
 * of interim responses, and {@link EXPORT_TIMEOUT_MS} between any two bytes.
 */
function createAgent(protocol: string): http.Agent {
  const agent = new (protocol === 'https:' ? https : http).Agent({ keepAlive: true }) as HttpAgent;
  const { addRequest } = agent;
  agent.addRequest = (request, options) => {
    boundResponse(request, MAX_RESPONSE_BYTES);
    const timeout = setTimeout(() => request.destroy(new Error('no response in time')), EXPORT_TIMEOUT_MS);
    request.once('close', () => clearTimeout(timeout));
    // Without this listener, Node.js closes the connection without an error, and the export would never end.
    request.once('upgrade', (_response, socket) => {
      socket.destroy();
      request.emit('error', new Error('the collector switched protocols'));
    });
    addRequest.call(agent, request, options);
  };
  return agent;
}
