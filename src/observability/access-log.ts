import type { ProblemCode } from '../problems/table.ts';
import type { Logger } from './logger.ts';
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
  readonly durationMs?: number | undefined;
  readonly upstreamMs?: number | undefined;
  /** How the quota was decided, where it was. */
  readonly quota?: string | undefined;
  /** `denied` where a shadow limit would have refused. */
  readonly shadow?: 'denied' | undefined;
  /** Of the answer's content. */
  readonly bytes?: number | undefined;
}

export type AccessLog = (record: AccessRecord) => void;

/**
 * One line a request, at level `info` whatever the logger's own level: only `mode` decides whether there is one. Members
 * that are unknown are left out.
 */
export function createAccessLog(logger: Logger, mode: AccessLogMode): AccessLog {
  if (mode === 'off') return () => {};
  const lines = logger.child({}, { level: 'info' });
  return (record) => {
    if (mode === 'errors' && record.status < 500 && record.problem === undefined) return;
    lines.info(
      {
        request_id: record.requestId,
        method: record.method,
        route: record.route,
        status: record.status,
        code: record.problem,
        source: record.source,
        customer: record.customer,
        plan: record.plan,
        key_id: record.keyId,
        client: record.clientAddress,
        duration_ms: rounded(record.durationMs),
        upstream_ms: rounded(record.upstreamMs),
        quota: record.quota,
        shadow: record.shadow,
        bytes: record.bytes,
      },
      'request',
    );
  };
}

/** To microseconds. */
function rounded(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.round(ms * 1000) / 1000;
}
