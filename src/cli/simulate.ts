/** Tries hourly limits on the past: on requests of the access log, or on the usage history alone. */
import { ReplayedCustomer } from '../quota/replay.ts';
import { LogSummary, readInOrderOfArrival } from './access-log-files.ts';
import type { DocumentOptions } from './admin-options.ts';
import { UsageError } from './exit-status.ts';
import { print, printJson, remark } from './output.ts';
import { type Columns, shortTime, tableUnlessEmpty } from './table.ts';

export interface SimulateOptions extends DocumentOptions {
  readonly log?: readonly string[];
  /** Requests per hour, by plan. */
  readonly plan?: ReadonlyMap<string, number>;
  /** Requests per hour, by customer. They take precedence. */
  readonly customer?: ReadonlyMap<string, number>;
  /** ISO 8601. */
  readonly from?: string;
}

export interface TriedLimits {
  readonly plans: ReadonlyMap<string, number>;
  readonly customers: ReadonlyMap<string, number>;
}

interface PlanShare {
  readonly plan: string;
  readonly requests_per_hour: number;
  customers: number;
  customers_refused: number;
  requests: number;
  requests_refused: number;
}

const PLAN_COLUMNS: Columns<PlanShare> = {
  PLAN: ({ plan }) => plan,
  'PER HOUR': ({ requests_per_hour: limit }) => limit,
  CUSTOMERS: ({ customers }) => customers,
  'CUSTOMERS REFUSED': ({ customers_refused: refused, customers }) => share(refused, customers),
  REQUESTS: ({ requests }) => requests,
  'REQUESTS REFUSED': ({ requests_refused: refused, requests }) => share(refused, requests),
};

const CUSTOMER_COLUMNS: Columns<ReturnType<typeof customerDocument>> = {
  CUSTOMER: ({ customer }) => customer,
  PLAN: ({ plan }) => plan,
  'PER HOUR': ({ requests_per_hour: limit }) => limit,
  REQUESTS: ({ requests }) => requests,
  REFUSED: ({ refused }) => refused,
  'REFUSED IN LOG': ({ refused_in_log: refused }) => refused,
  'FIRST REFUSED': ({ first_refused_at: at }) => shortTime(at),
};

export async function simulate(options: SimulateOptions): Promise<void> {
  const limits = { plans: options.plan ?? new Map(), customers: options.customer ?? new Map() };
  if (limits.plans.size + limits.customers.size === 0) {
    throw new UsageError('no limit to try: name at least one by --plan PLAN=N or --customer CUSTOMER=N');
  }
  if (options.log !== undefined) return simulateLog(options.log, limits, options);
  const { simulateHistory } = await import('./simulate-history.ts');
  await simulateHistory(limits, options);
}

async function simulateLog(files: readonly string[], limits: TriedLimits, { json }: SimulateOptions): Promise<void> {
  const summary = new LogSummary();
  const customers = await replay(files, limits, summary);
  if (summary.damagedLines > 0) {
    remark(`Damaged lines that were skipped: ${summary.damagedLines}. The first is ${summary.firstDamaged}.`);
  }
  if (summary.requestLines === 0) {
    throw new Error('there are no lines of requests: the files must be access logs of the gateway in JSON');
  }
  remarkOnGaps(summary, limits, customers);

  const documents = customers
    .map(customerDocument)
    .toSorted((a, b) => b.refused - a.refused || (a.customer < b.customer ? -1 : 1));
  const plans = [...limits.plans].map(([plan, limit]) => planShare(plan, limit, documents));
  if (json) {
    const log = {
      from: new Date(summary.fromMs).toISOString(),
      to: new Date(summary.toMs).toISOString(),
      lines: summary.requestLines,
      damaged_lines: summary.damagedLines,
    };
    return printJson({ log, plans, customers: documents });
  }
  const refused = documents.filter(({ first_refused_at: at }) => at !== null);
  if (refused.length === 0) remark('No customer would have been refused.');
  await print([...tableUnlessEmpty(plans, PLAN_COLUMNS), ...tableUnlessEmpty(refused, CUSTOMER_COLUMNS)].join('\n'));
}

async function replay(
  files: readonly string[],
  limits: TriedLimits,
  summary: LogSummary,
): Promise<readonly ReplayedCustomer[]> {
  const customers = new Map<string, ReplayedCustomer>();
  let nowMs = 0;
  for await (const batch of readInOrderOfArrival(files, summary)) {
    for (const { customer, plan, arrivedMs, count, wasRefused } of batch) {
      let replayed = customers.get(customer);
      // A line that sums up refusals has no plan: the customer's other lines tell it.
      const planNow = plan ?? replayed?.plan ?? '';
      const limit = limits.customers.get(customer) ?? limits.plans.get(planNow);
      if (limit === undefined) continue;
      if (replayed === undefined) {
        replayed = new ReplayedCustomer(customer, planNow, limit);
        customers.set(customer, replayed);
      }
      nowMs = Math.max(nowMs, arrivedMs);
      replayed.plan = planNow;
      replayed.limit = limit;
      replayed.replay(nowMs, count);
      if (wasRefused) replayed.refusedInLog += count;
    }
  }
  return [...customers.values()];
}

/** Says what the log cannot tell. */
function remarkOnGaps(summary: LogSummary, { plans, customers }: TriedLimits, replayed: readonly ReplayedCustomer[]) {
  const seen = {
    plans: new Set(replayed.map(({ plan }) => plan)),
    customers: new Set(replayed.map((each) => each.customer)),
  };
  for (const plan of plans.keys()) if (!seen.plans.has(plan)) remark(`No request of plan ${plan} is in the log.`);
  for (const id of customers.keys()) if (!seen.customers.has(id)) remark(`No request of customer ${id} is in the log.`);
  if (summary.unattributedRefusals > 0) {
    remark(`Refused requests that the log sums up without their customers, left out: ${summary.unattributedRefusals}.`);
  }
  if (summary.successLines === 0) {
    remark('The log has no successful requests: it was probably written with logging.access: errors.');
  }
  const from = shortTime(new Date(summary.fromMs).toISOString());
  remark(
    `The log begins at ${from}. Requests before it are unknown, so refusals within its first hour may be missing.`,
  );
}

function customerDocument({
  customer,
  plan,
  limit,
  requests,
  refused,
  refusedInLog,
  firstRefusedMs,
}: ReplayedCustomer) {
  return {
    customer,
    plan,
    requests_per_hour: limit,
    requests,
    refused,
    refused_in_log: refusedInLog,
    first_refused_at: firstRefusedMs === undefined ? null : new Date(firstRefusedMs).toISOString(),
  };
}

function planShare(plan: string, limit: number, documents: readonly ReturnType<typeof customerDocument>[]): PlanShare {
  const share = {
    plan,
    requests_per_hour: limit,
    customers: 0,
    customers_refused: 0,
    requests: 0,
    requests_refused: 0,
  };
  for (const { requests, refused } of documents.filter((each) => each.plan === plan)) {
    share.customers++;
    if (refused > 0) share.customers_refused++;
    share.requests += requests;
    share.requests_refused += refused;
  }
  return share;
}

function share(part: number, whole: number): string {
  return `${part} (${whole === 0 ? 0 : Math.round((1000 * part) / whole) / 10} %)`;
}
