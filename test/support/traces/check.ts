/**
 * Replays traces of gateways against the rules of the formal model (tools/model), and counts every hour by brute force.
 *
 * Rules, by the names that violations have:
 * - `window`: in no 3600 s of store time more units of the store begin than the limit;
 * - `period`: nor more on grants of a day or month than it allows, and than closed ones refunded to it;
 * - `share`: nor more without the store, at each gateway, than its share of the hour and the period;
 * - `unit`: of each grant at most the granted units begin, as many as its route takes with each request, plus are refunded in
 *   total, however often a refund is sent;
 * - `hold`: a request begins after the grant of its unit, and before the end of its hold;
 * - `counted`: the hour and the period count each unit whose request began, and grant none above the limit;
 * - `charge`: what is charged was admitted without the store, has one id however often it is sent, and no more is refunded.
 *
 * Gateways and Redis run on one machine, so its wall time is the store's, until a reply shows that the store's clock was
 * set. Then the requests that follow are dated by the new time.
 */
import type { AdmittedLocally, Begun, Charged, Granted, Refunded, TraceEvent } from './events.ts';

interface Violation {
  readonly rule: 'window' | 'period' | 'share' | 'unit' | 'hold' | 'counted' | 'charge';
  readonly customer: string;
  /** What happened, in numbers. */
  readonly text: string;
  readonly event: TraceEvent;
}

export interface TraceCounts {
  grants: number;
  units: number;
  begins: number;
  refunds: number;
}

export interface TraceReport {
  /** The first one in time; undefined if all rules hold. */
  readonly violation: Violation | undefined;
  readonly counts: TraceCounts;
}

export interface Allowances {
  /** The store lost writes of so many units of one customer: each of them may be used once more. */
  readonly lostUnits?: number;
}

type TracedPeriod = NonNullable<Granted['period']>;

const WINDOW_MS = 3_600_000;
/** Times are whole milliseconds, read before and after what they date. */
const ROUNDING_MS = 2;
/** A reply that is further off shows that the store's clock was set. */
const CLOCK_SET_MS = 1000;

/** So long after its end, units return to a period. */
const CLOSES_MS = 30_000;

/** What becomes of the units of one id. */
interface Units {
  /** Undefined until the reply to the reservation, if there is one. */
  granted?: { readonly grant: Granted; readonly storeTimeMs: number };
  charged?: number;
  begun: number;
  /** In total, by the highest refund. */
  refunded: number;
  /** The same of those refunds that may have come after the end of the period. */
  refundedLate: number;
}

interface Period {
  readonly begun: BeginTimes;
  /** Infinity if requests beyond it were served, too. */
  mostBegun: number;
}

interface Customer {
  /** By the id of their grant or charge. */
  readonly units: Map<string, Units>;
  /** Units of the store whose requests began: all, and by their epoch. */
  readonly begun: BeginTimes;
  readonly begunIn: Map<string, BeginTimes>;
  readonly periods: Map<string, Period>;
  /** Units that returned to a later period than theirs. */
  refundedLate: number;
  /** Units that were admitted without the store. */
  charged: number;
  readonly limits: { readonly atMs: number; readonly limit: number }[];
  /** By gateway. */
  readonly local: Map<string, Local>;
}

interface Local {
  readonly begun: BeginTimes;
  mostBegun: number;
  uncharged: number;
  readonly periods: Map<string, Period>;
  /** That of the last admission. */
  period: Period | undefined;
}

/** When units began, in the order in which they did. */
class BeginTimes {
  readonly #times: number[] = [];
  readonly #windowMs: number;
  #expired = 0;

  constructor(windowMs = WINDOW_MS) {
    this.#windowMs = windowMs;
  }

  add(atMs: number, units: number): void {
    for (let i = 0; i < units; i += 1) this.#times.push(atMs);
  }

  /** Returns how many began in the window that ends now, without those of the last `recentMs`. */
  within(nowMs: number, recentMs = 0): number {
    const times = this.#times;
    while ((times[this.#expired] ?? nowMs) <= nowMs - this.#windowMs) this.#expired += 1;
    let end = times.length;
    while (recentMs > 0 && end > this.#expired && (times[end - 1] ?? 0) >= nowMs - recentMs) end -= 1;
    return end - this.#expired;
  }
}

export function checkTraces(events: readonly TraceEvent[], { lostUnits = 0 }: Allowances = {}): TraceReport {
  const counts: TraceCounts = { grants: 0, units: 0, begins: 0, refunds: 0 };
  const customers = new Map<string, Customer>();
  let clockSetByMs = 0;

  const customerOf = (name: string): Customer => {
    const known = customers.get(name);
    if (known) return known;
    const fresh: Customer = {
      ...{ units: new Map(), begun: new BeginTimes(), begunIn: new Map(), periods: new Map() },
      ...{ limits: [], local: new Map(), refundedLate: 0, charged: 0 },
    };
    customers.set(name, fresh);
    return fresh;
  };

  function granted(event: Granted): Violation | undefined {
    const { storeTimeMs, sentMs, atMs, limit, used, epoch, grant: id } = event;
    if (storeTimeMs - atMs - clockSetByMs > CLOCK_SET_MS || sentMs + clockSetByMs - storeTimeMs > CLOCK_SET_MS) {
      clockSetByMs = storeTimeMs - atMs;
    }
    counts.grants += 1;
    counts.units += event.granted;
    const customer = customerOf(event.customer);
    unitsOf(customer, id).granted = { grant: event, storeTimeMs: storeTimeMs - clockSetByMs };
    customer.limits.push({ atMs: storeTimeMs, limit });
    if (event.granted > 0 && used > limit) return fault('counted', event, `${used} units counted of ${limit}`);
    const begun = customer.begunIn.get(epoch)?.within(storeTimeMs, ROUNDING_MS) ?? 0;
    const least = begun + event.granted - lostUnits;
    if (used < least) return fault('counted', event, `${used} units counted where ${begun} had begun`);
    return event.period && grantedInPeriod(customer, event, event.period);
  }

  function grantedInPeriod(customer: Customer, event: Granted, counted: TracedPeriod): Violation | undefined {
    const { name, used, limit, beyond } = counted;
    const period = periodOf(customer.periods, name);
    period.mostBegun = Math.max(period.mostBegun, mostIn(counted));
    if (event.granted > 0 && beyond === 'refuse' && used > limit) {
      return fault('counted', event, `${used} units counted of ${limit} of the period`);
    }
    const begun = period.begun.within(event.storeTimeMs, ROUNDING_MS);
    const least = begun + event.granted - lostUnits - customer.refundedLate;
    return used < least
      ? fault('counted', event, `${used} units counted in the period where ${begun} had begun`)
      : undefined;
  }

  function begun(event: Begun): Violation | undefined {
    counts.begins += 1;
    const customer = customerOf(event.customer);
    const atMs = event.atMs + clockSetByMs;
    if (event.grant === 'local') return begunLocally(customer, event);
    const units = unitsOf(customer, event.grant);
    if (units.granted === undefined) return fault('unit', event, 'the request began without a grant');
    const { grant, storeTimeMs } = units.granted;
    units.begun += event.units;
    const tooMany = tooManyUnits(units, event);
    if (tooMany) return tooMany;
    // By the machine's clock: what a gateway has in hand stays good when the store's clock is set.
    if (event.atMs < grant.sentMs) return fault('hold', event, 'the request began before its unit was asked for');
    const lateMs = event.atMs - storeTimeMs - grant.holdMs;
    if (lateMs > 0) return fault('hold', event, `the request began ${lateMs} ms after the hold`);
    const inEpoch = customer.begunIn.get(grant.epoch) ?? new BeginTimes();
    customer.begunIn.set(grant.epoch, inEpoch);
    inEpoch.add(atMs, event.units);
    customer.begun.add(atMs, event.units);
    const inWindow = customer.begun.within(atMs);
    const most = limitOf(customer, atMs) + lostUnits;
    if (inWindow > most) return fault('window', event, `${inWindow} units began in an hour, of ${most}`);
    if (grant.period === undefined) return undefined;
    const period = periodOf(customer.periods, grant.period.name);
    period.begun.add(atMs, event.units);
    const inPeriod = period.begun.within(atMs);
    const mostInPeriod = period.mostBegun + customer.refundedLate + lostUnits;
    return inPeriod > mostInPeriod
      ? fault('period', event, `${inPeriod} units began in ${grant.period.name}, of ${mostInPeriod}`)
      : undefined;
  }

  function begunLocally(customer: Customer, event: Begun): Violation | undefined {
    const local = customer.local.get(event.gateway);
    if (local === undefined) return fault('share', event, 'the request began, and was not admitted');
    for (const share of [local, local.period]) {
      share?.begun.add(event.atMs, event.units);
      const begun = share?.begun.within(event.atMs) ?? 0;
      if (share && begun > share.mostBegun) {
        return fault('share', event, `${begun} units began on a share of ${share.mostBegun}`);
      }
    }
    return undefined;
  }

  function admittedLocally({ customer: name, gateway, limit, instances, units, period }: AdmittedLocally): undefined {
    const { local, charged } = customerOf(name);
    const known = local.get(gateway) ?? {
      ...{ begun: new BeginTimes(), mostBegun: 0, uncharged: 0, periods: new Map(), period: undefined },
    };
    local.set(gateway, known);
    known.mostBegun = Math.max(known.mostBegun, 1, Math.floor(limit / instances));
    known.uncharged += units;
    known.period = period && periodOf(known.periods, period.name);
    if (period === undefined || known.period === undefined) return;
    // What this gateway admitted and charged is not free any more, and part of its share.
    const free = period.free === undefined ? period.limit : Math.min(period.limit, period.free + charged);
    known.period.mostBegun = Math.max(
      known.period.mostBegun,
      mostIn({ ...period, limit: Math.floor(free / instances) }),
    );
  }

  function charged(event: Charged): Violation | undefined {
    const customer = customerOf(event.customer);
    const units = unitsOf(customer, event.grant);
    if (units.charged === event.units) return undefined;
    if (units.charged !== undefined) return fault('charge', event, `${units.charged} units were charged under this id`);
    units.charged = event.units;
    customer.charged += event.units;
    // The window store is another object than the local windows, so a gateway has one name for each.
    const all = [...customer.local.values()];
    let left = event.units;
    for (const local of all) {
      const taken = Math.min(left, local.uncharged);
      local.uncharged -= taken;
      left -= taken;
    }
    return left > 0 ? fault('charge', event, `${left} units were charged that were not admitted`) : undefined;
  }

  function refunded(event: Refunded): Violation | undefined {
    counts.refunds += 1;
    const customer = customerOf(event.customer);
    const units = unitsOf(customer, event.grant);
    units.refunded = Math.max(units.refunded, event.units);
    const { endMs = Number.POSITIVE_INFINITY } = units.granted?.grant.period ?? {};
    if (event.atMs + clockSetByMs >= endMs + CLOSES_MS - ROUNDING_MS && units.refunded > units.refundedLate) {
      customer.refundedLate += units.refunded - units.refundedLate;
      units.refundedLate = units.refunded;
    }
    const { charged = Number.POSITIVE_INFINITY } = units;
    if (units.refunded > charged) return fault('charge', event, `${units.refunded} of ${charged} units were refunded`);
    return tooManyUnits(units, event);
  }

  function check(event: TraceEvent): Violation | undefined {
    switch (event.event) {
      case 'granted':
        return granted(event);
      case 'begun':
        return begun(event);
      case 'refunded':
        return refunded(event);
      case 'admitted locally':
        return admittedLocally(event);
      case 'charged':
        return charged(event);
    }
  }

  let violation: Violation | undefined;
  for (const event of events) violation ??= check(event);
  return { violation, counts };
}

function fault(rule: Violation['rule'], event: TraceEvent, text: string): Violation {
  return { rule, customer: event.customer, text, event };
}

function unitsOf({ units }: Customer, id: string): Units {
  const known = units.get(id) ?? { begun: 0, refunded: 0, refundedLate: 0 };
  units.set(id, known);
  return known;
}

function periodOf(periods: Map<string, Period>, name: string): Period {
  const known = periods.get(name) ?? { begun: new BeginTimes(Number.POSITIVE_INFINITY), mostBegun: 0 };
  periods.set(name, known);
  return known;
}

function mostIn({ limit, beyond }: Pick<TracedPeriod, 'limit' | 'beyond'>): number {
  return beyond === 'allow' ? Number.POSITIVE_INFINITY : limit;
}

/** Before its reply, all that a reservation asked for may be refunded. No request begins then. */
function tooManyUnits({ granted, begun, refunded }: Units, event: TraceEvent): Violation | undefined {
  if (granted === undefined || begun + refunded <= granted.grant.granted) return undefined;
  return fault('unit', event, `${begun} units began and ${refunded} were refunded, of ${granted.grant.granted}`);
}

/** Returns the highest limit of an hour: requests that were admitted under it count in a window with a lower one. */
function limitOf({ limits }: Customer, atMs: number): number {
  return Math.max(...limits.filter((each) => each.atMs > atMs - WINDOW_MS).map(({ limit }) => limit), 0);
}
