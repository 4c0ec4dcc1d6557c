/** Who sends what: customers by what is hard about them, in numbers that follow from one. */
export interface CustomerClass {
  readonly name: string;
  readonly customers: number;
  /** Requests an hour that each may send. */
  readonly limit: number;
  /** Requests a second of all of them together. */
  readonly perSecond: number;
  /** So many come at one instant; the rate is kept. */
  readonly burst: number;
  /** Gateways that one customer's requests reach. */
  readonly spread: number;
  readonly fromMs: number;
  readonly toMs: number;
}

export interface TrafficSettings {
  readonly customers: number;
  readonly gateways: number;
  readonly durationMs: number;
}

/** How often a customer of the largest class comes in the whole run. */
const RARE_VISITS = 2;
const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

export function customerClasses({ customers, gateways, durationMs }: TrafficSettings): CustomerClass[] {
  const share = (part: number) => Math.max(1, Math.round(customers * part));
  const hours = durationMs / HOUR_MS;
  const common = { burst: 1, spread: gateways, fromMs: 0, toMs: durationMs };
  const saturating = share(1 / 2000);
  const bursting = share(1 / 10_000);
  const hard: CustomerClass[] = [
    // Half as much again as is allowed, all the time.
    { ...common, name: 'saturating', customers: saturating, limit: 1000, perSecond: (saturating * 1500) / 3600 },
    // 500 at one instant, fifteen times an hour, of which ten are allowed.
    { ...common, name: 'bursting', customers: bursting, limit: 5000, burst: 500, perSecond: (bursting * 7500) / 3600 },
    // A client that does not wait after a 429.
    { ...common, name: 'flooding', customers: 2, limit: 1000, perSecond: 200, toMs: 20 * MINUTE_MS },
    // Far from its limit; its connections end at four gateways.
    { ...common, name: 'heavy', customers: 2, limit: 1_000_000, perSecond: 200, spread: 4, toMs: 10 * MINUTE_MS },
    // The same over all gateways, which makes it rare at each.
    { ...common, name: 'wide', customers: 1, limit: 10_000_000, perSecond: 1000, toMs: MINUTE_MS },
  ];
  const rare = Math.max(1, customers - hard.reduce((sum, each) => sum + each.customers, 0));
  const visits = { ...common, name: 'rare', customers: rare, limit: 1000 };
  return [{ ...visits, perSecond: (rare * RARE_VISITS) / (hours * 3600) }, ...hard];
}
