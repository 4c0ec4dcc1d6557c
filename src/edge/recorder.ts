import type { Clock } from '../base/clock.ts';
import { Throttle } from '../base/throttle.ts';
import type { QuotaDecision } from '../customers/quota/customer-quota.ts';
import type { FailedRequestCollector } from '../customers/usage/failed-request-collector.ts';
import type { HistoryCollector } from '../customers/usage/history-collector.ts';
import { PROBLEMS, type ProblemCode } from '../http/problems/table.ts';
import type { AccessLog, AccessRecord } from '../observability/access-log.ts';
import type { Logger } from '../observability/logger.ts';
import type { BrowserUseOutcome, Metrics, ResponseSource } from '../observability/metrics.ts';
import type { RecentRefusals } from '../observability/recent-refusals.ts';
import { DamagedRecordError, type StoreUnavailableError } from '../store/errors.ts';
import { type PeriodLimit, periodIn } from '../store/windows.ts';
import { isClientFault } from '../upstream/failures.ts';
import type { ForwardOutcome } from '../upstream/forward-request.ts';
import { BURST_POLICY } from './rate-limit-headers.ts';
import type { AdmittedDecision, RequestContext } from './request-context.ts';

/** Status in metrics and logs if the client disconnects before there is one; nginx introduced the number. */
const CLIENT_CLOSED_REQUEST = 499;
const REPEAT_AFTER_MS = 10_000;
/** Minimum interval between log lines about the same key. */
const KEY_REPEAT_AFTER_MS = 600_000;
/** Minimum interval between log lines about the same customer and its shadow limit. */
const SHADOW_REPEAT_AFTER_MS = 3_600_000;
/** Maximum number of keys or customers that each throttle of log lines tracks. */
const MAX_IDS = 10_000;

interface RecorderParts {
  readonly metrics: Metrics;
  readonly accessLog: Pick<AccessLog, 'write'>;
  /** `note` is called for each refusal of a known customer, so it must be cheap. */
  readonly refusals: Pick<RecentRefusals, 'note'>;
  /** Collects the approximate part of the usage history. Undefined: there is none. */
  readonly history?: HistoryCollector | undefined;
  /** Collects refused and failed requests for support. */
  readonly failedRequests: Pick<FailedRequestCollector, 'note'>;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** What is wrong with a request that has no valid key. */
const KEY_PROBLEMS: ReadonlySet<ProblemCode> = new Set<ProblemCode>([
  'missing_key',
  'malformed_key',
  'invalid_key',
  'key_in_query',
  'too_many_failures',
]);
/** In the totals by plan: refused before the key was checked. */
const UNCHECKED = 'unchecked';

interface Finish {
  readonly status: number;
  readonly problem?: ProblemCode;
  readonly outcome?: ForwardOutcome | undefined;
  /** The client got the response headers, but not the complete body. */
  readonly isAborted?: boolean;
  /** Why the gateway closed the client's connection, if it did so within the response. */
  readonly closeReason?: string | undefined;
}

type AdmittedLimits = NonNullable<AdmittedDecision['limits']>;

/** From this percentage of a limit on, a customer is noted as near it. */
const NEAR_PERCENT = 50;

export type Recorder = ReturnType<typeof createRecorder>;

/** Writes the metrics and log lines of requests. Records the end of each request once. */
export function createRecorder(parts: RecorderParts) {
  const { metrics, accessLog, refusals, history, failedRequests, logger, clock } = parts;
  let inFlight = 0;

  function sent(context: RequestContext): void {
    const { customer, plan, settings } = context;
    history?.sent(plan, settings.routes.hasUnits ? customer : undefined);
    noteDeprecated(context, false);
  }

  function finish(context: RequestContext, { status, problem, outcome, isAborted, closeReason }: Finish): void {
    // An unexpected error can follow after the end of the request was recorded.
    if (context.isRecorded) return;
    context.isRecorded = true;
    const { requestId, route, plan, settings, traceId } = context;
    const durationMs = clock.monotonicMs() - context.startedAtMs;
    const { receivedBytes: bytesIn, bufferingMs = 0 } = context.body ?? {};
    const upstreamMs = outcome?.wasSent ? outcome.upstreamMs : undefined;
    if (outcome?.wasSent) sent(context);
    if (problem === 'gone') noteDeprecated(context, true);
    inFlight--;
    metrics.inflight(-1);
    const backend = context.destination?.backend;
    backend?.ended();
    const record: AccessRecord = {
      requestId,
      method: context.method,
      route,
      status,
      problem,
      source: settings.via ?? (problem === undefined && outcome?.status !== undefined ? 'upstream' : 'gateway'),
      customer: context.customer,
      plan,
      keyId: context.keyId,
      isKeyless: context.isKeyless,
      keyHeader: context.keyHeader,
      clientAddress: context.client.address,
      traceId,
      durationMs,
      upstreamMs,
      bufferingMs,
      backend: backend?.name,
      upstream: outcome?.wasSent ? outcome.upstream : undefined,
      units: context.isKeyless || context.units === 1 ? undefined : context.units,
      quota: context.quota,
      shadow: context.shadow === 'denied' ? 'denied' : undefined,
      bytes: outcome?.contentBytes,
      bytesIn,
      isAborted,
      failure: outcome?.kind === 'failed' ? outcome.failure : closeReason,
    };
    metrics.request(record);
    accessLog.write(record);
    context.trace?.end(record, outcome);
    const hasFailed = problem !== undefined || status >= 500 || record.failure !== undefined;
    const hasLeft = status === CLIENT_CLOSED_REQUEST && outcome?.status === undefined;
    if ((hasFailed || hasLeft) && !settings.isUnlisted?.(context.req)) noteFailed(record);
  }

  function noteFailed(record: AccessRecord): void {
    const { requestId, status, problem: code, source, customer, keyId, method, route, clientAddress } = record;
    const { backend, upstream, failure, durationMs } = record;
    const client = clientAddress === '' ? undefined : clientAddress;
    const cause = { backend, upstream, failure, durationMs };
    failedRequests.note({ requestId, status, code, source, customer, keyId, method, route, client, ...cause });
  }

  function noteDeprecated({ customer, life, route }: RequestContext, isGone: boolean): void {
    if (customer !== undefined && life?.isEnding) history?.deprecated(customer, route, isGone);
  }

  function explainFailure(context: RequestContext, outcome: ForwardOutcome): void {
    // Already logged when the last upstream went out of service.
    if (outcome.kind !== 'failed' || outcome.failure === 'none_available' || isClientFault(outcome.failure)) return;
    if (outcome.failure === 'share_exceeded') {
      const { customer, isKeyless, keyId } = context;
      if (!shareWarnings.isDue(customer ?? '')) return;
      const user = isKeyless ? 'requests without a key use up their' : 'a customer uses up its';
      logger.warn(
        { customer, key_id: keyId, backend: context.destination?.backend.name },
        `${user} share of the connections to a backend: further ones are refused`,
      );
      return;
    }
    const { failure, headSent, cause } = outcome;
    logger.warn(
      { ...idsOf(context), backend: context.destination?.backend.name, failure, head_sent: headSent, err: cause },
      'upstream failed',
    );
  }

  /** Logs that the plan's shadow limit, which is not enforced, would have refused the request. */
  function explainShadow(
    { customer = '', plan }: RequestContext,
    decision: AdmittedDecision,
    limits: AdmittedLimits,
  ): void {
    if (!shadowNotes.isDue(customer)) return;
    logger.info(
      {
        customer,
        plan,
        limit: limits[0].amount,
        used: usedOf(decision, limits),
        shadow_limit: decision.shadowLimit,
      },
      "a customer is above its plan's shadow limit, which would refuse it from here on",
    );
  }

  /** Rate-limit log lines that a flood of requests would repeat. The metrics count each occurrence. */
  const storeWarnings = new Throttle(clock, REPEAT_AFTER_MS, 1);
  const shareWarnings = new Throttle(clock, REPEAT_AFTER_MS, MAX_IDS);
  const backendWarnings = new Throttle(clock, REPEAT_AFTER_MS, MAX_IDS);
  const limitErrors = new Throttle(clock, REPEAT_AFTER_MS, MAX_IDS);
  const shadowNotes = new Throttle(clock, SHADOW_REPEAT_AFTER_MS, MAX_IDS);
  const browserWarnings = new Throttle(clock, KEY_REPEAT_AFTER_MS, MAX_IDS);

  return {
    /** Number of requests in progress. */
    get inFlight(): number {
      return inFlight;
    },

    opened(): void {
      inFlight++;
      metrics.inflight(1);
    },

    authenticated: metrics.auth,

    /** Counts a valid key by the header that held it. */
    keyHeader: metrics.keyHeader,

    /** Counts a dropped X-Tollgate-* request header: only the gateway may identify the customer to the backend. */
    spoofed: metrics.spoofedHeader,

    /** Counts a valid key that a browser sent, and logs its id. */
    sentByBrowser({ customer, keyId, plan }: RequestContext, outcome: BrowserUseOutcome): void {
      metrics.browserUse(plan, outcome);
      if (!browserWarnings.isDue(keyId ?? '')) return;
      logger.warn(
        { customer, key_id: keyId, outcome },
        'an API key is used from a browser, where anyone can read it: ask the customer to rotate it and to call from a server',
      );
    },

    decided(context: RequestContext, decision: QuotaDecision): void {
      const { plan } = context;
      switch (decision.outcome) {
        case 'admitted': {
          const { limits } = decision;
          if (limits === undefined) return;
          const { mode } = decision.admission;
          context.quota = mode;
          context.shadow = decision.shadow;
          metrics.quotaDecision(plan, limits[0].policy, leavesAtMost(5, decision, limits) ? 'near' : 'allowed', mode);
          const overage = overageIn(decision, limits);
          if (overage !== undefined) metrics.quotaDecision(plan, overage, 'overage', mode);
          const percent = mode === 'local' ? 0 : percentUsed(decision, limits);
          if (percent >= NEAR_PERCENT) history?.near(context.customer ?? '', percent);
          if (decision.shadow === undefined) return;
          if (decision.shadow === 'denied') explainShadow(context, decision, limits);
          metrics.quotaDecision(plan, 'shadow', decision.shadow === 'denied' ? 'shadow_denied' : 'allowed', mode);
          return;
        }
        case 'quota_exceeded':
          context.quota = decision.mode;
          if (decision.violated.some(({ policy }) => policy !== 'key')) history?.near(context.customer ?? '', 100);
          for (const { policy } of decision.violated) metrics.quotaDecision(plan, policy, 'denied', decision.mode);
          return;
        case 'cost_exceeds_limit':
          metrics.quotaDecision(plan, decision.limit.policy, 'denied', 'lease');
          return;
        case 'burst_exceeded':
          metrics.quotaDecision(plan, BURST_POLICY, 'denied', 'lease');
          return;
        case 'too_many_concurrent':
          metrics.quotaDecision(plan, 'concurrent', 'denied', 'lease');
          return;
      }
    },

    /** Records that a request needed the store, and the store was unavailable or the record damaged. */
    undecided(context: RequestContext, reason: StoreUnavailableError): void {
      const { customer, keyId, plan } = context;
      // The store itself logs and counts damaged records.
      if (reason instanceof DamagedRecordError) {
        if (context.known === undefined) metrics.auth('unusable');
        return;
      }
      if (storeWarnings.isDue('')) {
        logger.warn({ ...idsOf(context), customer, key_id: keyId, err: reason }, 'the store did not respond');
      }
      if (keyId === undefined) metrics.auth('store_error');
      else metrics.quotaDecision(plan, 'hourly', 'store_error', 'store');
    },

    /** Logs that the requests of a backend leave too little room for those of others. */
    backendOverloaded(backend: string): void {
      if (!backendWarnings.isDue(backend)) return;
      const what = 'requests for this backend use up half of limits.in_flight: its further requests are refused';
      logger.warn({ backend }, what);
    },

    /** Records a successful response of the gateway itself. */
    responded(context: RequestContext): void {
      finish(context, { status: 200 });
    },

    /** Records that a proxy was told that it may serve the request. */
    checked(context: RequestContext): void {
      sent(context);
      finish(context, { status: 200 });
    },

    /** Ends a request that is in no metric and no log. */
    dropped(context: RequestContext): void {
      if (context.isRecorded) return;
      context.isRecorded = true;
      inFlight--;
      metrics.inflight(-1);
    },

    /** Records a problem document sent as response; `outcome` is set if forwarding failed. */
    refused(context: RequestContext, code: ProblemCode, outcome?: ForwardOutcome): void {
      const { customer, isKeyless, keyId } = context;
      if (customer !== undefined) refusals.note(customer, code, keyId);
      const isUnchecked = keyId === undefined && !isKeyless && !KEY_PROBLEMS.has(code);
      const plan = isUnchecked ? UNCHECKED : context.plan;
      if (outcome === undefined || PROBLEMS[code].status < 500) history?.refused(customer, plan, code);
      else history?.upstreamFailed(context.plan);
      finish(context, { status: PROBLEMS[code].status, problem: code, outcome });
      if (outcome) explainFailure(context, outcome);
    },

    /** Records the end of a forwarded request: the response was relayed completely, or either side aborted. */
    forwarded(context: RequestContext, outcome: ForwardOutcome, closeReason?: string): void {
      const { status } = outcome;
      if (outcome.kind === 'failed' || (status !== undefined && status >= 500)) history?.upstreamFailed(context.plan);
      finish(context, {
        status: status ?? CLIENT_CLOSED_REQUEST,
        outcome,
        isAborted: outcome.kind !== 'completed' && status !== undefined,
        closeReason,
      });
      explainFailure(context, outcome);
    },

    /** Records the refusal of input that never became a request. */
    unparsed(source: ResponseSource, code: ProblemCode, requestId: string, clientAddress: string): void {
      const { status } = PROBLEMS[code];
      const seen = { route: 'none', method: 'other', status, source, plan: 'none', problem: code } as const;
      metrics.request(seen);
      const record = { ...seen, requestId, clientAddress };
      accessLog.write(record);
      noteFailed(record);
    },

    /** Logs a customer without a usable limit: an operator must correct its record or the plans. */
    limitMissing(context: RequestContext, reason: string): void {
      const { customer, keyId } = context;
      if (!limitErrors.isDue(customer ?? '')) return;
      logger.error({ ...idsOf(context), customer, key_id: keyId, reason }, 'a customer has no quota');
    },

    /** Logs an unexpected error, and records the end of its request. `context` is undefined if none was opened yet. */
    bug(error: unknown, context: RequestContext | undefined): void {
      logger.error({ ...(context && idsOf(context)), err: error }, 'internal error');
      if (context === undefined || context.isRecorded) return;
      const { customer, keyId, res } = context;
      const code = 'internal_error';
      if (customer !== undefined) refusals.note(customer, code, keyId);
      const isAborted = res.headersSent;
      const status = isAborted ? res.statusCode : PROBLEMS[code].status;
      finish(context, { status, problem: code, isAborted });
    },
  };
}

/** Returns what identifies a request in log lines about it. */
function idsOf({ requestId, traceId }: RequestContext) {
  return { request_id: requestId, trace_id: traceId };
}

/** Returns the policy of the period that this request exceeds; undefined if none. */
function overageIn({ admission }: AdmittedDecision, limits: AdmittedLimits): PeriodLimit['policy'] | undefined {
  const period = periodIn(limits);
  return period && admission.remaining(limits.length - 1) < 0 ? period.policy : undefined;
}

/** Returns the units of the hour that are used with this request. */
function usedOf({ admission }: AdmittedDecision, limits: AdmittedLimits): number {
  return limits[0].amount - admission.remaining(0);
}

/** Returns the percentage that is used with this request: of the customer's limit with the highest one. */
function percentUsed({ admission }: AdmittedDecision, limits: AdmittedLimits): number {
  let highest = 0;
  for (let index = 0; index < limits.length; index++) {
    const { amount = 1, policy } = limits[index] ?? {};
    if (policy === 'key') continue;
    highest = Math.max(highest, Math.floor((100 * (amount - admission.remaining(index))) / amount));
  }
  return highest;
}

/** Returns whether this request leaves at most `1 / divisor` of the hour's limit. False without the store: usage is unknown then. */
function leavesAtMost(divisor: number, { admission }: AdmittedDecision, limits: AdmittedLimits): boolean {
  return divisor * admission.remaining(0) <= limits[0].amount && admission.mode !== 'local';
}
