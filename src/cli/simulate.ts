/**
 * Tries hourly limits on the usage history, which has a count for each clock hour. The hour of the quota slides, so it
 * spans two clock hours at most times, and what the history proves is:
 *
 * - `surely`: some clock hour has more requests than the limit.
 * - `surely_not`: no two adjacent clock hours have more together.
 * - `perhaps`: anything else.
 */
import { type Command, InvalidArgumentError } from '@commander-js/extra-typings';
import { z } from 'zod';
import { CUSTOMER_ID, TIME } from '../admin-api/responses.ts';
import type { AdminClient } from '../admin-client/admin-client.ts';
import { type DocumentOptions, documentCommand } from './admin-commands.ts';
import { connect } from './connect.ts';
import { UsageError } from './exit-status.ts';
import { print, printJson, remark } from './output.ts';
import { type Columns, shortTime, tableUnlessEmpty } from './table.ts';
import { readTime, timeParser } from './times.ts';

interface SimulateOptions extends DocumentOptions {
  /** Requests per hour, by plan. */
  readonly plan?: ReadonlyMap<string, number> | undefined;
  /** Requests per hour, by customer. They take precedence. */
  readonly customer?: ReadonlyMap<string, number> | undefined;
  /** ISO 8601. */
  readonly from?: string | undefined;
}

interface TriedLimits {
  readonly plans: ReadonlyMap<string, number>;
  readonly customers: ReadonlyMap<string, number>;
}

const VERDICTS = ['surely', 'perhaps', 'surely_not'] as const;
type Verdict = (typeof VERDICTS)[number];

/** One line of the usage export. */
const CLOSED_HOUR = z.object({ customer: CUSTOMER_ID, start: TIME, requests: z.int().min(0) });

const HOUR_MS = 3_600_000;
const DEFAULT_AGE = '7d';
/** Customers in one response of the export. */
const PAGE_CUSTOMERS = '100';

const PLAN_COLUMNS: Columns<ReturnType<typeof planVerdicts>> = {
  PLAN: ({ plan }) => plan,
  'PER HOUR': ({ requests_per_hour: limit }) => limit,
  CUSTOMERS: ({ customers }) => customers,
  'SURELY REFUSED': ({ surely }) => surely,
  PERHAPS: ({ perhaps }) => perhaps,
  'SURELY NOT': ({ surely_not: not }) => not,
};

const CUSTOMER_COLUMNS: Columns<ReturnType<typeof customerDocument>> = {
  CUSTOMER: ({ customer }) => customer,
  PLAN: ({ plan }) => plan,
  'PER HOUR': ({ requests_per_hour: limit }) => limit,
  REFUSED: ({ verdict }) => verdict,
  'AT LEAST': ({ refused_at_least: refused }) => refused,
  'MOST IN ONE HOUR': ({ most_in_one_hour: most }) => most,
  'MOST IN TWO HOURS': ({ most_in_two_hours: most }) => most,
};

/** What the history says of one customer. */
export class CustomerHours {
  readonly customer: string;
  readonly plan: string;
  readonly limit: number;
  mostInOneHour = 0;
  mostInTwoHours = 0;
  refusedAtLeast = 0;
  #last = { startMs: Number.NEGATIVE_INFINITY, requests: 0 };

  constructor(customer: string, plan: string, limit: number) {
    this.customer = customer;
    this.plan = plan;
    this.limit = limit;
  }

  get verdict(): Verdict {
    if (this.mostInOneHour > this.limit) return 'surely';
    return this.mostInTwoHours > this.limit ? 'perhaps' : 'surely_not';
  }

  /** Adds a clock hour, later than those before. Hours without requests may be left out. */
  add(startMs: number, requests: number): void {
    const before = startMs - this.#last.startMs === HOUR_MS ? this.#last.requests : 0;
    this.mostInOneHour = Math.max(this.mostInOneHour, requests);
    this.mostInTwoHours = Math.max(this.mostInTwoHours, before + requests);
    this.refusedAtLeast += Math.max(0, requests - this.limit);
    this.#last = { startMs, requests };
  }
}

export function addSimulateCommand(program: Command): void {
  documentCommand(program, 'simulate', 'show whom other limits would have refused, by the usage history', 'print JSON')
    .option('--plan <plan=limit...>', 'requests per hour of a plan: starter=800', parseLimit)
    .option('--customer <customer=limit...>', 'requests per hour of a customer', parseLimit)
    .option('--from <time>', 'start of the usage history to read: 2026-01-31 or an age, such as 7d', timeParser('past'))
    .action(simulate);
}

/** Adds `name=limit` to the limits given so far. @throws InvalidArgumentError */
function parseLimit(text: string, before: ReadonlyMap<string, number> = new Map()): ReadonlyMap<string, number> {
  const [, name, limit] = /^(.+)=([1-9]\d{0,14})$/.exec(text) ?? [];
  if (name !== undefined) return new Map([...before, [name, Number(limit)]]);
  throw new InvalidArgumentError('It must be a name, "=" and an integer of at least 1, such as starter=800.');
}

async function simulate(options: SimulateOptions): Promise<void> {
  const limits = { plans: options.plan ?? new Map(), customers: options.customer ?? new Map() };
  if (limits.plans.size + limits.customers.size === 0) {
    throw new UsageError('no limit to try: name at least one by --plan PLAN=N or --customer CUSTOMER=N');
  }
  const client = await connect(options);
  const customers = await customersWith(limits, client);
  const from = options.from ?? readTime(DEFAULT_AGE, Date.now(), 'past') ?? '';
  await readHistory(client, from, customers);

  const documents = [...customers.values()].map(customerDocument).toSorted(byVerdict);
  const plans = [...limits.plans].map(([plan, limit]) => planVerdicts(plan, limit, documents));
  if (options.json) return printJson({ from, plans, customers: documents });
  remark(`Whole hours since ${shortTime(from)} are counted. The current hour is not.`);
  const refused = documents.filter(({ verdict }) => verdict !== 'surely_not');
  if (refused.length === 0) remark('No customer would have been refused.');
  await print([...tableUnlessEmpty(plans, PLAN_COLUMNS), ...tableUnlessEmpty(refused, CUSTOMER_COLUMNS)].join('\n'));
}

/** Returns the customers whose limit is tried. A customer with a limit of its own is not subject to its plan's. */
async function customersWith(
  { plans, customers }: TriedLimits,
  client: AdminClient,
): Promise<Map<string, CustomerHours>> {
  const found = new Map<string, CustomerHours>();
  for await (const page of client.pages('GET /admin/v1/customers')) {
    for (const { id, plan, current_plan: currentPlan, limit_source: source } of page) {
      const name = currentPlan ?? plan;
      const limit = customers.get(id) ?? (source === 'plan' ? plans.get(name) : undefined);
      if (limit !== undefined) found.set(id, new CustomerHours(id, name, limit));
    }
  }
  for (const id of customers.keys()) if (!found.has(id)) remark(`There is no customer ${id}.`);
  return found;
}

async function readHistory(client: AdminClient, from: string, customers: Map<string, CustomerHours>): Promise<void> {
  for await (const { text } of client.exportUsage({ format: 'jsonl', limit: PAGE_CUSTOMERS, from })) {
    for (const line of text.split('\n')) {
      if (line === '') continue;
      const { customer, start, requests } = CLOSED_HOUR.parse(JSON.parse(line));
      customers.get(customer)?.add(Date.parse(start), requests);
    }
  }
}

function customerDocument(hours: CustomerHours) {
  return {
    customer: hours.customer,
    plan: hours.plan,
    requests_per_hour: hours.limit,
    verdict: hours.verdict,
    refused_at_least: hours.refusedAtLeast,
    most_in_one_hour: hours.mostInOneHour,
    most_in_two_hours: hours.mostInTwoHours,
  };
}

type CustomerVerdict = ReturnType<typeof customerDocument>;

function byVerdict(a: CustomerVerdict, b: CustomerVerdict): number {
  return VERDICTS.indexOf(a.verdict) - VERDICTS.indexOf(b.verdict) || b.most_in_two_hours - a.most_in_two_hours;
}

function planVerdicts(plan: string, limit: number, documents: readonly CustomerVerdict[]) {
  const ofPlan = documents.filter((each) => each.plan === plan);
  const count = (verdict: Verdict) => ofPlan.filter((each) => each.verdict === verdict).length;
  return {
    plan,
    requests_per_hour: limit,
    customers: ofPlan.length,
    surely: count('surely'),
    perhaps: count('perhaps'),
    surely_not: count('surely_not'),
  };
}
