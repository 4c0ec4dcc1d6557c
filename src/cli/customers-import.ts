/**
 * Imports customers from a file. The whole file is checked first, also against the gateway's plans; only then are
 * customers created. An existing customer is not changed, so the same file can be imported again.
 */
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { customerMembers, END_NEEDS_SUSPENSION, NEW_CUSTOMER_ID } from '../api/admin/requests.ts';
import type { ConfigDocument, CustomerDocument } from '../api/admin/responses.ts';
import type { AdminClient } from '../api/client/admin-client.ts';
import { AdminRefusal } from '../api/client/failures.ts';
import { printable } from '../api/client/printable.ts';
import type { LineFault } from './csv.ts';
import { findCustomer, type ImportOptions, type ImportResult, importFile } from './import.ts';
import { csvOrJsonLines, fromText, type Line, lineOfMember, numberIn, type RawLine } from './import-file.ts';
import { readAnchor, readTime } from './times.ts';

/** The admin API's rules for each member. The fields of CSV are text. `nowMs`: an end by then is a fault. */
function lineSchema(nowMs: number) {
  const { requests_per_hour, period_requests, period_anchor, temporary_limit, suspended, suspended_until, ...texts } =
    customerMembers(() => nowMs);
  const time = (text: string) => readTime(text, nowMs, 'future') ?? text;
  const limit = (text: string) => {
    const [number = '', until = ''] = text.split(' until ');
    return { requests_per_hour: numberIn(number), until: time(until) };
  };
  return z
    .strictObject({
      id: NEW_CUSTOMER_ID,
      plan: z.string().min(1, 'must not be empty'),
      ...texts,
      requests_per_hour: z.preprocess(fromText(numberIn), requests_per_hour),
      period_requests: z.preprocess(fromText(numberIn), period_requests),
      period_anchor: z.preprocess(
        fromText((text) => readAnchor(text) ?? text),
        period_anchor,
      ),
      temporary_limit: z.preprocess(fromText(limit), temporary_limit),
      suspended: z.preprocess(fromText(flagIn), suspended),
      suspended_until: z.preprocess(fromText(time), suspended_until),
    })
    .refine(...END_NEEDS_SUSPENSION);
}

const flagIn = (text: string) => (/^(true|false|1|0)$/.test(text) ? text === 'true' || text === '1' : text);

/** One customer to import, in the admin API's form. */
type CustomerLine = Line<z.output<ReturnType<typeof lineSchema>>>;

export const CUSTOMER_IDENTITY = {
  name: 'id',
  of: ({ id }: RawLine['members']) => (typeof id === 'string' ? id : undefined),
};

export function importCustomers(options: ImportOptions): Promise<void> {
  const schema = lineSchema(Date.now());
  return importFile(options, {
    items: 'customers',
    schema,
    read: csvOrJsonLines(Object.keys(schema.shape), (header) => {
      const missing = ['id', 'plan'].filter((name) => !header.includes(name));
      return missing.length > 0 ? `no column ${missing.join(' and no column ')}` : undefined;
    }),
    identity: CUSTOMER_IDENTITY,
    askGateway: async (client, lines) => planFaults(lines, await client.call('GET /admin/v1/config')),
    importOne,
    async tryOne(client, line) {
      const customer = await findCustomer(client, line.id);
      return customer === undefined ? { outcome: 'would be imported' } : compared(customer, line);
    },
    row: ({ id, plan, name = null }, { differs = [] }) => ({ customer: id, plan, differs, name }),
    columns: {
      CUSTOMER: 'customer',
      PLAN: 'plan',
      'DIFFERS IN': ({ differs }) => differs.join(', '),
      NAME: 'name',
    },
  });
}

/** Returns faults for customers that would have no limit under the running configuration. */
export function planFaults(lines: readonly RawLine[], { plans, overrides }: ConfigDocument): LineFault[] {
  return lines.flatMap((each) => {
    const { id, plan } = each.members;
    const line = lineOfMember(each, ['plan']);
    if (typeof plan !== 'string') return [];
    if (!Object.hasOwn(plans, plan)) {
      return [{ line, what: printable(`plan: must be one of the configured plans: ${Object.keys(plans).join(', ')}`) }];
    }
    const override = typeof id === 'string' && Object.hasOwn(overrides ?? {}, id) ? overrides?.[id] : undefined;
    const isGiven = (name: string) => each.members[name] != null || override?.[name] != null;
    const limits = {
      requests_per_hour: plans[plan]?.requests_per_hour,
      period_requests: plans[plan]?.period?.requests,
    };
    return Object.entries(limits).flatMap(([name, limit]) =>
      limit === 'custom' && !isGiven(name) ? [{ line, what: `${name}: missing, and the plan is custom` }] : [],
    );
  });
}

async function importOne(client: AdminClient, customerLine: CustomerLine): Promise<ImportResult> {
  const { line: _, ...body } = customerLine;
  try {
    await client.call('POST /admin/v1/customers', { body });
    return { outcome: 'imported' };
  } catch (error) {
    const exists = error instanceof AdminRefusal && error.problem.status === 409;
    const customer = exists ? await findCustomer(client, body.id) : undefined;
    if (customer === undefined) throw error;
    return compared(customer, customerLine);
  }
}

/** Compares only the members that the line has. */
function compared(customer: CustomerDocument, { line: _, id, plan, ...members }: CustomerLine): ImportResult {
  const others = Object.entries(members).filter(
    ([name, value]) => value !== undefined && !isDeepStrictEqual(value, Reflect.get(customer, name)),
  );
  const isOnPlan = plan === customer.plan || plan === customer.current_plan;
  const differs = [...(isOnPlan ? [] : ['plan']), ...others.map(([name]) => name)];
  return differs.length === 0 ? { outcome: 'already there' } : { outcome: 'differs', differs };
}
