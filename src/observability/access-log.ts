import type { Clock } from '../clock.ts';
import type { ProblemCode } from '../problems/table.ts';
import type { LogDestination } from './logger.ts';
import type { AnswerSource } from './metrics.ts';

/** `errors`: refusals of the gateway and answers of 500 or more; the backend's own 4xx are not errors of a gateway. */
export type AccessLogMode = 'all' | 'errors' | 'off';

/** What is known of a finished request. No key, no raw path, no query. */
export interface AccessRecord {
  readonly requestId: string;
  readonly method: string;
  /** The configured template or `none`. */
  readonly route: string;
  readonly status: number;
  /** Of the problem document, if the gateway answered one. */
  readonly problem?: ProblemCode | undefined;
  readonly source: AnswerSource;
  readonly customer?: string | undefined;
  readonly plan?: string | undefined;
  readonly keyId?: string | undefined;
  /** The nearest address that is not a trusted proxy. */
  readonly clientAddress: string;
  /** Of the trace that the request belongs to (W3C Trace Context). */
  readonly traceId?: string | undefined;
  readonly durationMs?: number | undefined;
  /** The part of it that the upstream had; left out when nothing was sent there. */
  readonly upstreamMs?: number | undefined;
  /** Its authority. */
  readonly upstream?: string | undefined;
  /** How the quota was decided, where it was. */
  readonly quota?: string | undefined;
  /** `denied` where a shadow limit would have refused. */
  readonly shadow?: 'denied' | undefined;
  /** Of the answer's content. */
  readonly bytes?: number | undefined;
}

export type AccessLog = (record: AccessRecord) => void;

/**
 * One JSON line a request at level `info`, whatever the logger's own level: only `mode` decides whether there is one.
 * Members that are unknown are left out. Written by hand, because a logger's general way of making a line costs more
 * than the rest of what is recorded of a request.
 */
export function createAccessLog(
  destination: LogDestination,
  mode: AccessLogMode,
  clock: Pick<Clock, 'nowMs'>,
): AccessLog {
  if (mode === 'off') return () => {};
  const timestamp = createTimestamp();
  return (record) => {
    if (mode === 'errors' && record.status < 500 && record.problem === undefined) return;
    destination.write(
      `{"level":"info","time":"${timestamp(clock.nowMs())}","request_id":${quoted(record.requestId)}` +
        `,"method":${quoted(record.method)},"route":${quoted(record.route)},"status":${record.status}` +
        text('code', record.problem) +
        text('source', record.source) +
        text('customer', record.customer) +
        text('plan', record.plan) +
        text('key_id', record.keyId) +
        text('client', record.clientAddress) +
        text('trace_id', record.traceId) +
        number('duration_ms', record.durationMs) +
        number('upstream_ms', record.upstreamMs) +
        number('overhead_ms', overheadMs(record)) +
        text('upstream', record.upstream) +
        text('quota', record.quota) +
        text('shadow', record.shadow) +
        number('bytes', record.bytes) +
        ',"msg":"request"}\n',
    );
  };
}

/** What of the duration was not spent with the upstream. */
function overheadMs({ durationMs, upstreamMs = 0 }: AccessRecord): number | undefined {
  return durationMs === undefined ? undefined : Math.max(0, durationMs - upstreamMs);
}

function text(name: string, value: string | undefined): string {
  return value === undefined ? '' : `,"${name}":${quoted(value)}`;
}

/** To three decimals. */
function number(name: string, value: number | undefined): string {
  return value === undefined ? '' : `,"${name}":${Math.round(value * 1000) / 1000}`;
}

/** Printable ASCII without what JSON escapes: stands in quotes as it is. */
const PLAIN = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;

function quoted(value: string): string {
  return PLAIN.test(value) ? `"${value}"` : JSON.stringify(value);
}

/** ISO 8601 UTC of a wall time in ms. Lines of one millisecond share the text. */
function createTimestamp(): (nowMs: number) => string {
  let lastMs = Number.NaN;
  let last = '';
  return (nowMs) => {
    if (nowMs !== lastMs) {
      last = new Date(nowMs).toISOString();
      lastMs = nowMs;
    }
    return last;
  };
}
