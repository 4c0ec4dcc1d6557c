import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { Ajv } from 'ajv';
import { onTestFinished } from 'vitest';

/** A span as a collector stores it. Times are in nanoseconds. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly name: string;
  readonly kind: 'server' | 'client';
  readonly start: bigint;
  readonly end: bigint;
  /** Whether the status is Error. */
  readonly isError: boolean;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly resource: Readonly<Record<string, unknown>>;
}

export interface Collector {
  readonly endpoint: string;
  readonly spans: readonly ReceivedSpan[];
  /** Everything received: headers and bodies. */
  readonly bytes: readonly string[];
  readonly headers: readonly IncomingHttpHeaders[];
  /** Exports received, with or without success. */
  readonly exports: number;
  close(): Promise<void>;
}

// OTLP 1.x in JSON: the fields of ExportTraceServiceRequest and its messages (opentelemetry-proto, trace.proto,
// common.proto, resource.proto) by the JSON mapping of protobuf with OTLP's exceptions: ids in hex, enums as integers.
// 64-bit integers are decimal strings. No other field is accepted.
const message = (properties: object, required: readonly string[] = []) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});
const list = (items: object) => ({ type: 'array', items });
const TEXT = { type: 'string' };
const UINT32 = { type: 'integer', minimum: 0, maximum: 2 ** 32 - 1 };
const UINT64 = { type: 'string', pattern: '^(0|[1-9][0-9]{0,19})$' };
const hex = (bytes: number) => ({ type: 'string', pattern: `^(?!0+$)[0-9a-f]{${2 * bytes}}$` });
const VALUE = {
  oneOf: [
    message({ stringValue: TEXT }, ['stringValue']),
    message({ boolValue: { type: 'boolean' } }, ['boolValue']),
    message({ intValue: { type: ['integer', 'string'], pattern: '^-?[0-9]+$' } }, ['intValue']),
    message({ doubleValue: { type: 'number' } }, ['doubleValue']),
    message({ arrayValue: message({ values: list({}) }) }, ['arrayValue']),
  ],
};
const ATTRIBUTES = list(message({ key: { type: 'string', minLength: 1 }, value: VALUE }, ['key', 'value']));
const SPAN = message(
  {
    traceId: hex(16),
    spanId: hex(8),
    traceState: TEXT,
    parentSpanId: hex(8),
    flags: UINT32,
    name: { type: 'string', minLength: 1 },
    kind: { type: 'integer', minimum: 0, maximum: 5 },
    startTimeUnixNano: UINT64,
    endTimeUnixNano: UINT64,
    attributes: ATTRIBUTES,
    droppedAttributesCount: UINT32,
    events: { type: 'array', maxItems: 0 },
    droppedEventsCount: UINT32,
    links: { type: 'array', maxItems: 0 },
    droppedLinksCount: UINT32,
    status: message({ message: TEXT, code: { type: 'integer', minimum: 0, maximum: 2 } }),
  },
  ['traceId', 'spanId', 'name', 'startTimeUnixNano', 'endTimeUnixNano'],
);
const SCOPE = message({ name: TEXT, version: TEXT, attributes: ATTRIBUTES, droppedAttributesCount: UINT32 });
const RESOURCE = message({ attributes: ATTRIBUTES, droppedAttributesCount: UINT32, entityRefs: list({}) });
const isExport = new Ajv({ allowUnionTypes: true }).compile<ExportRequest>(
  message(
    {
      resourceSpans: list(
        message({
          resource: RESOURCE,
          scopeSpans: list(message({ scope: SCOPE, spans: list(SPAN), schemaUrl: TEXT })),
          schemaUrl: TEXT,
        }),
      ),
    },
    ['resourceSpans'],
  ),
);

type Attributes = readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
interface ExportRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: Attributes };
    readonly scopeSpans: readonly {
      readonly spans: readonly {
        readonly traceId: string;
        readonly spanId: string;
        readonly parentSpanId?: string;
        readonly name: string;
        readonly kind: number;
        readonly startTimeUnixNano: string;
        readonly endTimeUnixNano: string;
        readonly attributes: Attributes;
        readonly status: { readonly code: number };
      }[];
    }[];
  }[];
}

function valuesOf(attributes: Attributes): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}

/** Returns the spans of an export. @throws Error if it is not OTLP. */
function decode(body: string): ReceivedSpan[] {
  const decoded: unknown = JSON.parse(body);
  if (!isExport(decoded)) throw new Error(`no OTLP: ${JSON.stringify(isExport.errors)}`);
  return decoded.resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => {
        const kind = { 2: 'server', 3: 'client' }[span.kind];
        if (kind !== 'server' && kind !== 'client') throw new Error(`a span of kind ${span.kind}`);
        return {
          traceId: span.traceId,
          spanId: span.spanId,
          parentSpanId: span.parentSpanId,
          name: span.name,
          kind,
          start: BigInt(span.startTimeUnixNano),
          end: BigInt(span.endTimeUnixNano),
          isError: span.status.code === 2,
          attributes: valuesOf(span.attributes),
          resource: valuesOf(resource.attributes),
        } as const;
      }),
    ),
  );
}

const ACCEPT: RequestListener = (_req, res) => res.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');

/** Starts a collector that accepts traces at /v1/traces; with `answer`, it responds by that. Closes with the test. */
export async function startCollector(answer: RequestListener = ACCEPT): Promise<Collector> {
  const [spans, bytes, headers]: [ReceivedSpan[], string[], IncomingHttpHeaders[]] = [[], [], []];
  const faults: unknown[] = [];
  const server = createServer(async (req, res) => {
    const body = (await buffer(req)).toString('latin1');
    bytes.push(req.rawHeaders.join('\n'), body);
    headers.push(req.headers);
    try {
      if (req.method !== 'POST' || req.url !== '/v1/traces') throw new Error(`${req.method} ${req.url}`);
      if (req.headers['content-type'] !== 'application/json') throw new Error(`${req.headers['content-type']}`);
      const decoded = decode(body);
      answer(req, res);
      if (res.statusCode === 200) spans.push(...decoded);
    } catch (error) {
      faults.push(error);
      res.writeHead(400).end();
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  let closed: Promise<unknown> | undefined;
  const close = async () => {
    if (closed === undefined) {
      closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
    }
    await closed;
  };
  onTestFinished(async () => {
    await close();
    if (faults.length > 0) throw new AggregateError(faults, 'the collector received something else than traces');
  });
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`,
    spans,
    bytes,
    headers,
    get exports() {
      return headers.length;
    },
    close,
  };
}
