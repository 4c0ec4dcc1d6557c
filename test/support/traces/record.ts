/**
 * Writes what gateways of this process do with units. Wraps methods of the gateway's own classes from outside: nothing in
 * `src` knows of it. The embedded store is not traced: one process uses it alone.
 *
 * Each line is written before the request begins, so the trace of a killed process lacks nothing that it did.
 */
import { openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Admission } from '../../../src/customers/quota/hourly-quota.ts';
import { Instances } from '../../../src/customers/quota/instances.ts';
import { Lease } from '../../../src/customers/quota/leases.ts';
import { LocalWindows } from '../../../src/customers/quota/local-windows.ts';
import { RequestContext } from '../../../src/edge/request-context.ts';
import { NotRunError } from '../../../src/store/errors.ts';
import { periodOf } from '../../../src/store/period-counts.ts';
import { HourlyWindow } from '../../../src/store/redis/window/hourly-window.ts';
import { HOUR_MS } from '../../../src/store/usage-history.ts';
import { type PeriodLimit, periodIn, type Refund, type ReserveRequest } from '../../../src/store/windows.ts';
import { Relay } from '../../../src/upstream/relay.ts';
import type { TraceEvent } from './events.ts';

/** Of one gateway: where its trace goes. */
interface Trace {
  readonly gateway: string;
  readonly folder: string;
}

type Unstamped<Event> = Event extends TraceEvent ? Omit<Event, 'atMs' | 'gateway'> : never;

// A test may replace the clock later.
const { now } = Date;
const files = new Map<string, number>();
const traces = new WeakMap<object, Trace>();
/** By the ids of grants. */
const grants = new Map<string, Trace>();
const local = new WeakMap<object, Trace>();
/** Leases by the deadlines of their requests: all that an admission shows of its lease. */
const leases = new Map<string, Lease>();
let count = 0;

/** Records from now on, each gateway in the folder that `folderNow` returns when it first asks the store. */
export function recordTraces(folderNow: () => string | undefined): void {
  const traceOf = (owner: object): Trace | undefined => {
    const folder = folderNow();
    const known = traces.get(owner);
    if (known !== undefined || folder === undefined) return known;
    const trace = { gateway: `${process.pid}-${++count}`, folder };
    traces.set(owner, trace);
    return trace;
  };
  recordStoreCalls(traceOf);
  recordLocalAdmissions(traceOf);
  recordBegins();
}

function recordStoreCalls(traceOf: (owner: object) => Trace | undefined): void {
  const { reserve, refund, charge } = HourlyWindow.prototype;
  const refunded = (trace: Trace, customer: string, refunds: readonly Refund[]) => {
    for (const { grant, units } of refunds) write(trace, { event: 'refunded', customer, grant, units });
  };
  HourlyWindow.prototype.reserve = function (request: ReserveRequest) {
    const trace = traceOf(this);
    if (trace === undefined) return reserve.call(this, request);
    const { customer, grant: id, limits, holdMs } = request;
    const limit = limits[0].amount;
    const sentMs = now();
    refunded(trace, customer, request.refunds);
    const reply = reserve.call(this, request);
    reply.then(
      ({ storeTimeMs, granted, counts }) => {
        grants.set(id, trace);
        const [{ used, epoch }] = counts;
        const periodLimit = periodIn(limits);
        const count = counts.at(-1);
        const period = periodLimit &&
          count?.period && {
            ...traced(periodLimit, count.period.startHour),
            used: count.used,
            endMs: count.period.endHour * HOUR_MS,
          };
        const reply = { storeTimeMs, granted, used, epoch, period };
        write(trace, { event: 'granted', customer, grant: id, sentMs, limit, holdMs, ...reply });
      },
      () => undefined,
    );
    return reply;
  };
  HourlyWindow.prototype.refund = function (customer, refunds) {
    const trace = traceOf(this);
    if (trace !== undefined) refunded(trace, customer, refunds);
    return refund.call(this, customer, refunds);
  };
  HourlyWindow.prototype.charge = function (customer, charged, period) {
    const trace = traceOf(this);
    const reply = charge.call(this, customer, charged, period);
    const note = () => {
      if (trace === undefined) return;
      for (const { grant, units } of charged) write(trace, { event: 'charged', customer, grant, units });
    };
    reply.then(note, (error) => error instanceof NotRunError || note());
    return reply;
  };
}

function recordLocalAdmissions(traceOf: (owner: object) => Trace | undefined): void {
  const { admit } = LocalWindows.prototype;
  const { countForShare } = Instances.prototype;
  let instances = 1;
  Instances.prototype.countForShare = function () {
    instances = countForShare.call(this);
    return instances;
  };
  LocalWindows.prototype.admit = function (state, units) {
    const admission = admit.call(this, state, units);
    const trace = traceOf(this);
    if (trace === undefined || admission.outcome !== 'admitted') return admission;
    local.set(admission, trace);
    const { customer, settings, lastReply } = state;
    const [{ amount: limit }] = settings.limits;
    const periodLimit = periodIn(settings.limits);
    const startHour = periodLimit && periodOf(periodLimit, now()).startHour;
    const count = lastReply?.counts.find(({ period }) => period?.startHour === startHour);
    const period = periodLimit && { ...traced(periodLimit, startHour ?? 0), free: count?.period && count.free };
    write(trace, { event: 'admitted locally', customer, limit, instances, units, period });
    return admission;
  };
}

function traced({ policy, amount, beyond }: PeriodLimit, startHour: number) {
  return { name: `${policy} ${startHour}`, limit: amount, beyond };
}

function recordBegins(): void {
  const { beginDeadline } = Lease.prototype;
  Lease.prototype.beginDeadline = function (instant) {
    const deadline = beginDeadline.call(this, instant);
    leases.set(`${deadline.monotonicMs} ${deadline.wallMs}`, this);
    return deadline;
  };
  const { get: deadlineOf } = Object.getOwnPropertyDescriptor(RequestContext.prototype, 'beginDeadlineMs') ?? {};
  if (deadlineOf === undefined) throw new Error('a request has no deadline to begin');
  let checked: RequestContext | undefined;
  Object.defineProperty(RequestContext.prototype, 'beginDeadlineMs', {
    get(this: RequestContext) {
      checked = this;
      return deadlineOf.call(this);
    },
  });
  const { onSend } = Relay.prototype;
  const begun = new WeakSet<Relay>();
  Relay.prototype.onSend = function () {
    const atMs = now();
    checked = undefined;
    const isSent = onSend.call(this);
    if (isSent && checked !== undefined && !begun.has(this)) {
      begun.add(this);
      recordBegin(checked, atMs);
    }
    return isSent;
  };
}

function recordBegin({ customer = '', admitted, units }: RequestContext, atMs: number): void {
  const admission: Admission | undefined = admitted?.admission;
  if (admission?.outcome !== 'admitted') return;
  const lease = leases.get(`${admission.beginDeadlineMs} ${admission.beginDeadlineWallMs}`);
  const grantedTo = lease && grants.get(lease.id);
  const trace = grantedTo ?? local.get(admission);
  if (trace === undefined) return;
  write(trace, { event: 'begun', customer, grant: grantedTo ? lease.id : 'local', units }, atMs);
}

function write({ folder, gateway }: Trace, event: Unstamped<TraceEvent>, atMs = now()): void {
  const name = join(folder, `${process.pid}.jsonl`);
  const file = files.get(name) ?? openSync(name, 'a');
  files.set(name, file);
  writeSync(file, `${JSON.stringify({ atMs, gateway, ...event })}\n`);
}
