/**
 * Replays traces of gateways against the rules of the formal model (tools/model), and counts every hour by brute force.
 *
 * Rules, by the names that violations have:
 * - `window`: in no 3600 s of store time more requests begin on units of the store than the limit;
 * - `share`: nor more without the store, at each gateway, than its share;
 * - `unit`: of each grant at most the granted units begin plus are refunded in total, however often a refund is sent;
 * - `hold`: a request begins after the grant of its unit, and before the end of its hold;
 * - `counted`: the store counts each unit whose request began, and grants none above the limit;
 * - `charge`: what is charged was admitted without the store, has one id however often it is sent, and no more is refunded.
 *
 * Gateways and Redis run on one machine, so its wall time is the store's, until a reply shows that the store's clock was
 * set. Then the requests that follow are dated by the new time.
 */
import type { AdmittedLocally, Begun, Charged, Granted, Refunded, TraceEvent } from './events.ts';

interface Violation {
  readonly rule: 'window' | 'share' | 'unit' | 'hold' | 'counted' | 'charge';
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

const WINDOW_MS = 3_600_000;
/** Times are whole milliseconds, read before and after what they date. */
const ROUNDING_MS = 2;
/** A reply that is further off shows that the store's clock was set. */
const CLOCK_SET_MS = 1000;

/** What becomes of the units of one id. */
interface Units {
  /** Undefined until the reply to the reservation, if there is one. */
  granted?: { readonly grant: Granted; readonly storeTimeMs: number };
  charged?: number;
  begun: number;
  /** In total, by the highest refund. */
  refunded: number;
}

interface Customer {
  /** By the id of their grant or charge. */
  readonly units: Map<string, Units>;
  /** Requests that began on units of the store: all, and by the epoch of these. */
  readonly begun: BeginTimes;
  readonly begunIn: Map<string, BeginTimes>;
  readonly limits: { readonly atMs: number; readonly limit: number }[];
  /** By gateway. */
  readonly local: Map<string, { readonly begun: BeginTimes; mostBegun: number; uncharged: number }>;
}

/** When requests began, in the order in which they did. */
class BeginTimes {
  readonly #times: number[] = [];
  #expired = 0;

  add(atMs: number): void {
    this.#times.push(atMs);
  }

  /** Returns how many began in the window that ends now, without those of the last `recentMs`. */
  within(nowMs: number, recentMs = 0): number {
    const times = this.#times;
    while ((times[this.#expired] ?? nowMs) <= nowMs - WINDOW_MS) this.#expired += 1;
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
    const begun = new BeginTimes();
    const fresh = { units: new Map(), begun, begunIn: new Map(), limits: [], local: new Map() };
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
    if (used < least) return fault('counted', event, `${used} units counted where ${begun} requests had begun`);
    return undefined;
  }

  function begun(event: Begun): Violation | undefined {
    counts.begins += 1;
    const customer = customerOf(event.customer);
    const atMs = event.atMs + clockSetByMs;
    if (event.grant === 'local') return begunLocally(customer, event);
    const units = unitsOf(customer, event.grant);
    if (units.granted === undefined) return fault('unit', event, 'the request began without a grant');
    const { grant, storeTimeMs } = units.granted;
    units.begun += 1;
    const tooMany = tooManyUnits(units, event);
    if (tooMany) return tooMany;
    // By the machine's clock: what a gateway has in hand stays good when the store's clock is set.
    if (event.atMs < grant.sentMs) return fault('hold', event, 'the request began before its unit was asked for');
    const lateMs = event.atMs - storeTimeMs - grant.holdMs;
    if (lateMs > 0) return fault('hold', event, `the request began ${lateMs} ms after the hold`);
    const inEpoch = customer.begunIn.get(grant.epoch) ?? new BeginTimes();
    customer.begunIn.set(grant.epoch, inEpoch);
    inEpoch.add(atMs);
    customer.begun.add(atMs);
    const inWindow = customer.begun.within(atMs);
    const most = limitOf(customer, atMs) + lostUnits;
    return inWindow > most ? fault('window', event, `${inWindow} requests began in an hour, of ${most}`) : undefined;
  }

  function begunLocally(customer: Customer, event: Begun): Violation | undefined {
    const local = customer.local.get(event.gateway);
    if (local === undefined) return fault('share', event, 'the request began, and was not admitted');
    local.begun.add(event.atMs);
    const begun = local.begun.within(event.atMs);
    return begun > local.mostBegun
      ? fault('share', event, `${begun} requests began in an hour on a share of ${local.mostBegun}`)
      : undefined;
  }

  function admittedLocally({ customer: name, gateway, limit, instances }: AdmittedLocally): undefined {
    const { local } = customerOf(name);
    const known = local.get(gateway) ?? { begun: new BeginTimes(), mostBegun: 0, uncharged: 0 };
    local.set(gateway, known);
    known.mostBegun = Math.max(known.mostBegun, 1, Math.floor(limit / instances));
    known.uncharged += 1;
  }

  function charged(event: Charged): Violation | undefined {
    const customer = customerOf(event.customer);
    const units = unitsOf(customer, event.grant);
    if (units.charged === event.units) return undefined;
    if (units.charged !== undefined) return fault('charge', event, `${units.charged} units were charged under this id`);
    units.charged = event.units;
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
    const units = unitsOf(customerOf(event.customer), event.grant);
    units.refunded = Math.max(units.refunded, event.units);
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
  const known = units.get(id) ?? { begun: 0, refunded: 0 };
  units.set(id, known);
  return known;
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
