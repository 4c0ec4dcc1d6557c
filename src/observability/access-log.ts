import type { Clock, Scheduled, Scheduler } from '../base/clock.ts';
import type { LogDestination } from './logger.ts';
import { overheadMs, type RequestSample } from './metrics.ts';
import { RepeatedRefusals } from './repeated-refusals.ts';

/** `errors`: refusals of the gateway and responses of 500 or more; the backend's own 4xx are no errors of a gateway. */
export type AccessLogMode = 'all' | 'errors' | 'off';

/** What is known of a finished request: never a key, a raw path or a query. */
export interface AccessRecord extends RequestSample {
  readonly requestId: string;
  readonly customer?: string | undefined;
  readonly keyId?: string | undefined;
  /** The route needs no key: that the request has no plan is no missing knowledge. */
  readonly isKeyless?: boolean;
  /** The configured name of the header that held the key. */
  readonly keyHeader?: string | undefined;
  /** The nearest address that is not a trusted proxy. */
  readonly clientAddress: string;
  /** ID of the trace that the request belongs to (W3C Trace Context). */
  readonly traceId?: string | undefined;
  /** Name of the backend of the route. */
  readonly backend?: string | undefined;
  /** Authority and base path of the upstream. */
  readonly upstream?: string | undefined;
  /** That a request of the route takes; omitted: 1, or none because the route needs no key. */
  readonly units?: number | undefined;
  /** How the quota was decided; omitted if it was not. */
  readonly quota?: string | undefined;
  /** `denied` if a shadow limit would have refused the request. */
  readonly shadow?: 'denied' | undefined;
  /** Body bytes received from the upstream. */
  readonly bytes?: number | undefined;
  /** The client got the head of the response, but not all of the rest. */
  readonly isAborted?: boolean | undefined;
  /** Why the backend's response is missing or truncated; omitted if the client left. */
  readonly failure?: string | undefined;
}

export type AccessLog = ReturnType<typeof createAccessLog>;

interface AccessLogParts {
  readonly destination: LogDestination;
  readonly mode: AccessLogMode;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly scheduler: Pick<Scheduler, 'after'>;
}

const REFUSALS_WINDOW_MS = 10_000;
/** Most refusals logged in full per window, for all clients together that no key identified. */
const ANONYMOUS_LINES = 1000;
/** The same for customers. Higher: their number is limited, because the operator creates them. */
const CUSTOMER_LINES = 10_000;

/**
 * Creates the access log: one JSON line per request at level `info`, whatever the logger's level. Only the mode decides
 * whether a request has one. Repeated refusals of requests that were not sent upstream are summed up (see
 * {@link RepeatedRefusals}). Unknown members are omitted. Lines are formatted by hand, because a logger's general
 * formatting costs more than the rest of recording a request.
 */
export function createAccessLog({ destination, mode: firstMode, clock, scheduler }: AccessLogParts) {
  let mode = firstMode;
  let lineStartMs = Number.NaN;
  let lineStart = '';
  const anonymous = new RepeatedRefusals(ANONYMOUS_LINES);
  const customers = new RepeatedRefusals(CUSTOMER_LINES);
  let window: Scheduled | undefined;

  /** Returns the start of a line. Lines of the same millisecond share it. */
  function begin(): string {
    const nowMs = clock.nowMs();
    if (nowMs !== lineStartMs) {
      lineStart = `{"level":"info","time":"${new Date(nowMs).toISOString()}"`;
      lineStartMs = nowMs;
    }
    return lineStart;
  }

  function isSummedUp({ problem, status, customer, clientAddress, upstreamMs }: AccessRecord): boolean {
    if (problem === undefined || upstreamMs !== undefined) return false;
    window ??= scheduler.after(REFUSALS_WINDOW_MS, endWindow);
    const refusals = customer === undefined ? anonymous : customers;
    return !refusals.isLoggedInFull({ problem, status, customer, clientAddress });
  }

  function endWindow(): void {
    window?.cancel();
    window = undefined;
    for (const refusals of [anonymous, customers]) {
      for (const { status, problem, customer, clientBlock, requests } of refusals.endWindow()) {
        const members = { status, code: problem, source: 'gateway', customer, client: clientBlock, requests };
        destination.write(`${begin()},${JSON.stringify({ ...members, msg: 'further refusals' }).slice(1)}\n`);
      }
    }
  }

  return {
    write(record: AccessRecord): void {
      if (mode === 'off' || (mode === 'errors' && record.status < 500 && record.problem === undefined)) return;
      if (isSummedUp(record)) return;
      destination.write(
        begin() +
          text(',"request_id":"', record.requestId) +
          text(',"method":"', record.method) +
          text(',"route":"', record.route) +
          number(',"status":', record.status) +
          text(',"code":"', record.problem) +
          (record.source === 'check' ? ',"source":"gateway","via":"check"' : text(',"source":"', record.source)) +
          text(',"customer":"', record.customer) +
          text(',"plan":"', record.plan === 'none' && !record.isKeyless ? undefined : record.plan) +
          text(',"key_id":"', record.keyId) +
          text(',"key_header":"', record.keyHeader) +
          text(',"client":"', record.clientAddress) +
          text(',"trace_id":"', record.traceId) +
          number(',"duration_ms":', record.durationMs) +
          number(',"upstream_ms":', record.upstreamMs) +
          number(',"overhead_ms":', overheadMs(record)) +
          text(',"backend":"', record.backend) +
          text(',"upstream":"', record.upstream) +
          number(',"units":', record.units) +
          text(',"quota":"', record.quota) +
          text(',"shadow":"', record.shadow) +
          number(',"bytes":', record.bytes) +
          number(',"bytes_in":', record.bytesIn) +
          (record.isAborted ? ',"aborted":true' : '') +
          text(',"failure":"', record.failure) +
          ',"msg":"request"}\n',
      );
    },
    /** Applies another mode from the next request on. */
    setMode(next: AccessLogMode): void {
      mode = next;
    },
    /** Writes the sums of the current window. */
    close: endWindow,
  };
}

/** Returns `before`, which ends with the opening quotation mark, and the value in JSON. Each `+` creates an object. */
function text(before: string, value: string | undefined): string {
  if (value === undefined) return '';
  return `${before}${PLAIN.test(value) ? value : JSON.stringify(value).slice(1, -1)}"`;
}

/** Rounds to three decimals. */
function number(before: string, value: number | undefined): string {
  return value === undefined ? '' : `${before}${Math.round(value * 1000) / 1000}`;
}

/** Printable ASCII that JSON does not escape, so that it can be quoted unchanged. */
const PLAIN = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;
