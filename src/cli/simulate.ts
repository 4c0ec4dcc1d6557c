/**
 * Tries hourly limits on the usage history, which has a count for each clock hour. The hour of the quota slides, so it
 * spans two clock hours at most times, and what the history proves is:
 *
 * - `surely`: some clock hour has more units than the limit.
 * - `surely_not`: no two adjacent clock hours have more together.
 * - `perhaps`: anything else.
 */
import { type Command, InvalidArgumentError } from '@commander-js/extra-typings';
import type { AdminClient } from '../api/client/admin-client.ts';
import { type DocumentOptions, documentCommand } from './admin-commands.ts';
import { connect } from './connect.ts';
import { UsageError } from './exit-status.ts';
import { printJson, printSections, remark } from './output.ts';
import {
  PERIOD_CUSTOMER_COLUMNS,
  PERIOD_PLAN_COLUMNS,
  parseTriedPeriod,
  simulatePeriods,
  type TriedPeriods,
} from './simulate-periods.ts';
import { type Columns, formatTable, shortTime } from './table.ts';
import { readTime, timeParser } from './times.ts';

/** Requests per hour, by plan or by customer. */
type Limits = ReadonlyMap<string, number>;

interface SimulateOptions extends DocumentOptions {
  readonly plan?: Limits | undefined;
  /** They take precedence. */
  readonly customer?: Limits | undefined;
  readonly period?: TriedPeriods | undefined;
  /** ISO 8601. */
  readonly from?: string | undefined;
}

const VERDICTS = ['surely', 'perhaps', 'surely_not'] as const;
type Verdict = (typeof VERDICTS)[number];

const HOUR_MS = 3_600_000;
const DEFAULT_AGE = '7d';
/** Customers in one response of the export. */
const PAGE_CUSTOMERS = '100';

const PLAN_COLUMNS: Columns<ReturnType<typeof planVerdicts>> = {
  PLAN: 'plan',
  'PER HOUR': 'requests_per_hour',
  CUSTOMERS: 'customers',
  'SURELY REFUSED': 'surely',
  PERHAPS: 'perhaps',
  'SURELY NOT': 'surely_not',
};

const CUSTOMER_COLUMNS: Columns<CustomerVerdict> = {
  CUSTOMER: 'customer',
  PLAN: 'plan',
  'PER HOUR': 'requests_per_hour',
  REFUSED: 'verdict',
  'AT LEAST': 'refused_at_least',
  'MOST IN ONE HOUR': 'most_in_one_hour',
  'MOST IN TWO HOURS': 'most_in_two_hours',
};

type CustomerVerdict = CustomerHours['found'];

export class CustomerHours {
  /** What the history says of the customer, as JSON shows it. */
  readonly found;
  #last = { startMs: Number.NEGATIVE_INFINITY, units: 0 };

  constructor(customer: string, plan: string, limit: number) {
    const none = { refused_at_least: 0, most_in_one_hour: 0, most_in_two_hours: 0 };
    this.found = { customer, plan, requests_per_hour: limit, verdict: 'surely_not' as Verdict, ...none };
  }

  /** Adds a clock hour, later than those before. Hours without units may be left out. */
  add(startMs: number, units: number): void {
    const { found } = this;
    const { requests_per_hour: limit } = found;
    const before = startMs - this.#last.startMs === HOUR_MS ? this.#last.units : 0;
    found.most_in_one_hour = Math.max(found.most_in_one_hour, units);
    found.most_in_two_hours = Math.max(found.most_in_two_hours, before + units);
    found.refused_at_least += Math.max(0, units - limit);
    if (found.most_in_one_hour > limit) found.verdict = 'surely';
    else if (found.most_in_two_hours > limit) found.verdict = 'perhaps';
    this.#last = { startMs, units };
  }
}

export function addSimulateCommand(program: Command): void {
  documentCommand(program, 'simulate', 'show whom other limits would have refused, by the usage history', 'print JSON')
    .option('--plan <plan=limit...>', 'requests per hour of a plan: starter=800', parseLimit)
    .option('--customer <customer=limit...>', 'requests per hour of a customer', parseLimit)
    .option(
      '--period <plan=limit...>',
      'requests per day or month of a plan: starter=50000, or for another period starter=500/day',
      parseTriedPeriod,
    )
    .option('--from <time>', 'start of the usage history to read: 2026-01-31 or an age, such as 7d', timeParser('past'))
    .action(simulate);
}

/** Adds `name=limit` to the limits given so far. @throws InvalidArgumentError */
function parseLimit(text: string, before: Limits = new Map()): Limits {
  const [, name, limit] = /^(.+)=([1-9]\d{0,14})$/.exec(text) ?? [];
  if (name !== undefined) return new Map([...before, [name, Number(limit)]]);
  throw new InvalidArgumentError('It must be a name, "=" and an integer of at least 1, such as starter=800.');
}

async function simulate(options: SimulateOptions): Promise<void> {
  const { plan: ofPlans = new Map(), customer: ofCustomers = new Map(), period } = options;
  const hasHours = ofPlans.size + ofCustomers.size > 0;
  if (!hasHours && period === undefined) {
    throw new UsageError(
      'no limit to try: name at least one by --plan PLAN=N, --customer CUSTOMER=N or --period PLAN=N',
    );
  }
  const client = await connect(options);
  const hours = hasHours ? await simulateHours(ofPlans, ofCustomers, options.from, client) : undefined;
  const periods = period && (await simulatePeriods(period, options.from, client));
  if (options.json) return printJson({ ...hours, periods });
  if (hours) remark(`Whole hours since ${shortTime(hours.from)} are counted. The current hour is not.`);
  if (periods) remark('Whole days and months that the usage history still has are counted. The current ones are not.');
  const refused = hours?.customers.filter(({ verdict }) => verdict !== 'surely_not') ?? [];
  const refusedInPeriods = periods?.customers.filter(({ verdict }) => verdict !== 'surely_not') ?? [];
  if (refused.length + refusedInPeriods.length === 0) remark('No customer would have been refused.');
  await printSections(
    formatTable(hours?.plans ?? [], PLAN_COLUMNS),
    formatTable(refused, CUSTOMER_COLUMNS),
    formatTable(periods?.plans ?? [], PERIOD_PLAN_COLUMNS),
    formatTable(refusedInPeriods, PERIOD_CUSTOMER_COLUMNS),
  );
}

async function simulateHours(ofPlans: Limits, ofCustomers: Limits, start: string | undefined, client: AdminClient) {
  const customers = await customersWith(ofPlans, ofCustomers, client);
  const from = start ?? readTime(DEFAULT_AGE, Date.now(), 'past') ?? '';
  const hours = client.closedHours({ limit: PAGE_CUSTOMERS, from });
  for await (const { customer, start, requests, units = requests } of hours) {
    customers.get(customer)?.add(Date.parse(start), units);
  }
  const documents = [...customers.values()].map(({ found }) => found).toSorted(byVerdict);
  return {
    from,
    plans: [...ofPlans].map(([plan, limit]) => planVerdicts(plan, limit, documents)),
    customers: documents,
  };
}

/** Returns the customers whose limit is tried. A customer with a limit of its own is not subject to its plan's. */
async function customersWith(
  ofPlans: Limits,
  ofCustomers: Limits,
  client: AdminClient,
): Promise<Map<string, CustomerHours>> {
  const found = new Map<string, CustomerHours>();
  for await (const page of client.pages('GET /admin/v1/customers')) {
    for (const { id, plan, current_plan: currentPlan, limit_source: source } of page) {
      const name = currentPlan ?? plan;
      const limit = ofCustomers.get(id) ?? (source === 'plan' ? ofPlans.get(name) : undefined);
      if (limit !== undefined) found.set(id, new CustomerHours(id, name, limit));
    }
  }
  for (const id of ofCustomers.keys()) if (!found.has(id)) remark(`There is no customer ${id}.`);
  return found;
}

function byVerdict(a: CustomerVerdict, b: CustomerVerdict): number {
  return VERDICTS.indexOf(a.verdict) - VERDICTS.indexOf(b.verdict) || b.most_in_two_hours - a.most_in_two_hours;
}

function planVerdicts(plan: string, limit: number, documents: readonly CustomerVerdict[]) {
  const ofPlan = documents.filter((each) => each.plan === plan);
  const counts = { surely: 0, perhaps: 0, surely_not: 0 };
  for (const { verdict } of ofPlan) counts[verdict] += 1;
  return { plan, requests_per_hour: limit, customers: ofPlan.length, ...counts };
}
