/**
 * The file that `customers apply` reads and `customers export` writes: YAML with a list `customers`, or JSON Lines with a
 * customer on each line. A member that is absent is left alone, and null unsets it.
 */
import { z } from 'zod';
import {
  customerMembers,
  describeIssue,
  END_NEEDS_SUSPENSION,
  NEW_CUSTOMER_ID,
  orNull,
  PLAN_NAME,
  shownName,
} from '../api/admin/requests.ts';
import type { CustomerDocument } from '../api/admin/responses.ts';
import { printableJson } from '../api/client/printable.ts';
import { isMapping } from '../base/mapping.ts';
import { UNREADABLE, YamlDocument } from '../config/document.ts';
import type { Path } from '../config/problems.ts';
import type { LineFault } from './csv.ts';
import { CUSTOMER_IDENTITY } from './customers-import.ts';
import { type Layout, type RawFile, readJsonLines } from './import-file.ts';
import { readInstant } from './times.ts';

/** A limit or a suspension that has ended stays in the file until somebody removes it, so it is no fault. */
const MEMBERS = customerMembers(() => Number.NEGATIVE_INFINITY);

/** The admin API's rules for each member. Times may be dates, as elsewhere on the command line. */
const CUSTOMER = z
  .strictObject({
    id: NEW_CUSTOMER_ID,
    plan: PLAN_NAME.optional(),
    ...orNull(MEMBERS),
    period_anchor: z.preprocess(inFull, MEMBERS.period_anchor.nullable()),
    temporary_limit: z.preprocess(
      (limit) => (isMapping(limit) && 'until' in limit ? { ...limit, until: inFull(limit.until) } : limit),
      MEMBERS.temporary_limit.nullable(),
    ),
    suspended_until: z.preprocess(inFull, MEMBERS.suspended_until.nullable()),
  })
  .refine(
    ({ suspended, suspended_until: until }) => suspended === undefined || suspended || !until,
    END_NEEDS_SUSPENSION[1],
  );

/** A customer of the file, in the admin API's form. */
export type WantedCustomer = z.output<typeof CUSTOMER>;

function inFull(time: unknown): unknown {
  return typeof time === 'string' ? (readInstant(time) ?? time) : time;
}

export const CUSTOMER_FILE: Layout<typeof CUSTOMER> = {
  schema: CUSTOMER,
  // JSON with a list "customers" is YAML, too.
  read: (text) => (/^\s*\{(?!\s*"?customers"?\s*:)/.test(text) ? readJsonLines(text) : readYaml(text)),
  identity: CUSTOMER_IDENTITY,
};

const TEXTS: ReadonlySet<unknown> = new Set(['id', 'plan', 'name', 'notify_url']);
/** `customers`, the index of a customer, one of its members. An id of digits is text. */
const isText = (path: Path) => path.length === 3 && TEXTS.has(path[2]);

function readYaml(text: string): RawFile {
  const document = new YamlDocument(text, undefined, { isText });
  const faultAt = (path: Path, what: string, line = document.lineOf(path)): LineFault => {
    const name = path.at(-1);
    return { line, what: typeof name === 'string' ? `${shownName(name)}: ${what}` : what };
  };
  const faults = document.problems.map(({ line, path, what }) => faultAt(path, what, line));
  const { root } = document;
  if (root === UNREADABLE) return { lines: [], faults };
  const others = isMapping(root) ? Object.keys(root).filter((name) => name !== 'customers') : [];
  faults.push(...others.map((name) => faultAt([name], 'unknown member')));
  const customers: unknown = isMapping(root) ? root.customers : undefined;
  if (customers === UNREADABLE) return { lines: [], faults };
  if (!Array.isArray(customers)) {
    const what = 'must be a list of customers, each with its id and other members';
    return { lines: [], faults: [...faults, faultAt(['customers'], what)] };
  }
  const paths = customers.map((_, index) => ['customers', index]);
  const isFaulty = (index: number) => customers[index] !== UNREADABLE && !isMapping(customers[index]);
  return {
    lines: paths.flatMap((path, index) => {
      const lineOf = (member: Path) => document.lineOf([...path, ...member]);
      return isMapping(customers[index]) ? [{ line: lineOf([]), members: customers[index], lineOf }] : [];
    }),
    faults: [
      ...faults,
      ...paths.flatMap((path, index) =>
        isFaulty(index) ? [faultAt(path, 'it is no customer: an id and other members')] : [],
      ),
    ],
  };
}

/**
 * Returns the members that can be set and are, in the order of the file. `faults`: members that are left out, because other
 * programs wrote what the file cannot have, and why.
 */
export function exportable({ current_plan, ...customer }: CustomerDocument) {
  const { suspended } = customer;
  const document = { ...customer, plan: current_plan ?? customer.plan, suspended: suspended || null };
  const set = Object.entries(CUSTOMER.shape).flatMap(([name]) => {
    const value: unknown = Reflect.get(document, name);
    return value === null ? [] : [[name, value] as const];
  });
  const { issues = [] } = CUSTOMER.safeParse(Object.fromEntries(set), { reportInput: true }).error ?? {};
  const members = Object.fromEntries(set.filter(([name]) => !issues.some(({ path }) => path[0] === name)));
  return { members, faults: issues.map((issue) => describeIssue(issue, { whole: 'it', member: 'member' })) };
}

/** Writes texts in quotes, so that YAML reads each as a text. */
export function yamlOf(customers: readonly object[]): string {
  const items = customers.map((members) => {
    const lines = Object.entries(members).map(([name, value]) => `${name}: ${printableJson(value, 0)}\n`);
    return `  - ${lines.join('    ')}`;
  });
  return `customers:${items.length === 0 ? ' []' : ''}\n${items.join('')}`;
}
