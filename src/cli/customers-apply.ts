/**
 * Makes customers as a file says, and writes such a file. The whole file is checked first, also against the gateway. Only
 * what differs is changed, so the same file can be applied again, also after a failure.
 */
import { isDeepStrictEqual } from 'node:util';
import type { CustomerDocument } from '../api/admin/responses.ts';
import type { RequestOf } from '../api/admin/routes.ts';
import type { AdminClient } from '../api/client/admin-client.ts';
import { AdminRefusal } from '../api/client/failures.ts';
import { printable, printableJson } from '../api/client/printable.ts';
import { inNumber } from '../base/in-number.ts';
import type { AdminOptions } from './admin-commands.ts';
import { confirm } from './confirm.ts';
import { connect } from './connect.ts';
import type { LineFault } from './csv.ts';
import { CUSTOMER_FILE, exportable, type WantedCustomer, yamlOf } from './customers-file.ts';
import { planFaults } from './customers-import.ts';
import {
  attemptEach,
  findCustomer,
  type ImportOptions,
  type ImportResult,
  readContent,
  requireNoFaults,
  requireSuccess,
  shownFile,
} from './import.ts';
import { type Line, type RawLine, readImportFile } from './import-file.ts';
import { print, printList, remark } from './output.ts';

interface ApplyOptions extends ImportOptions {
  /** Delete the customers that the file does not name. */
  readonly prune?: true | undefined;
  readonly yes?: true | undefined;
}

type Customers = ReadonlyMap<string, CustomerDocument>;

const MOST_NAMED = 10;

export async function applyCustomers(options: ApplyOptions): Promise<void> {
  const { file, dryRun, prune } = options;
  const { items, lines, faults } = readImportFile(await readContent(file), CUSTOMER_FILE);
  const isEmpty = lines.length === 0 && faults.length === 0;
  const emptied = { line: 1, what: 'customers: there is none, and --prune would delete all customers of the gateway' };
  let present: Customers = new Map();
  const client = await requireNoFaults(
    options,
    { lines, faults: prune && isEmpty ? [emptied] : faults },
    async (client, lines) => {
      const [config, customers] = await Promise.all([
        client.call('GET /admin/v1/config'),
        client.list('GET /admin/v1/customers'),
      ]);
      present = new Map(customers.map((customer) => [customer.id, customer]));
      return [...planless(lines, present), ...planFaults(withPresent(lines, present), config)];
    },
    NOTHING,
  );
  const wanted = items.map((item) => withoutEnded(item, file));
  const named = new Set(items.map(({ id }) => id));
  const others = sorted([...present.values()]).filter(({ id }) => !named.has(id));
  const pruned = prune ? others : [];
  const seesUrls = !dryRun || (await seesWholeUrls(client, present));
  if (pruned.length > 0 && !dryRun) await confirm(options, () => pruneQuestion(pruned));

  const applied = await attemptEach(wanted, (item) =>
    applyOne(dryRun ? undefined : client, item, present.get(item.id), seesUrls),
  );
  // A file that could not be applied may be the wrong one.
  const isApplied = applied.attempts.every(({ result }) => result.refusal === undefined) && applied.errors.length === 0;
  const deleted = await attemptEach(isApplied ? pruned : [], ({ id }) =>
    dryRun ? WOULD_BE_DELETED : deleteOne(client, id),
  );

  const rows = [...applied.attempts, ...deleted.attempts].map(({ item, result: { outcome, changes = {} } }) => {
    return { line: 'line' in item ? item.line : null, outcome, customer: item.id, changes };
  });
  const shown = options.json ? rows : rows.filter(({ outcome }) => !QUIET.has(outcome));
  const columns = { LINE: 'line', OUTCOME: 'outcome', CUSTOMER: 'customer', CHANGES: changesInWords } as const;
  await printList('changes', columns, shown, options);
  remark(summaryOf(rows, prune ? 0 : others.length));
  if (dryRun) remark(NOTHING);
  const attempts = applied.attempts.map(({ item: { line }, result }) => ({ item: { line }, result }));
  requireSuccess(file, { attempts, errors: [...applied.errors, ...deleted.errors] }, STOPPED, REFUSED);
}

const NOTHING = 'Nothing was changed.';
const STOPPED = 'The changes stopped there. Apply the file again: only what still differs is changed.';
const REFUSED = 'All other customers of the file are as it says. None was deleted.';
const WOULD_BE_DELETED = Promise.resolve<ImportResult>({ outcome: 'would be deleted' });
/** Outcomes that are counted, but not listed for people. */
const QUIET: ReadonlySet<string> = new Set<ImportResult['outcome']>(['unchanged', 'not tried']);

function planless(lines: readonly RawLine[], customers: Customers): LineFault[] {
  return lines.flatMap(({ line, members: { id, plan } }) => {
    if (typeof id !== 'string' || plan !== undefined || customers.has(id)) return [];
    return [{ line, what: 'plan: missing, and there is no customer with this id' }];
  });
}

/** Completes what sets the limits by the present customer, so that they can be checked. Lines that leave them are omitted. */
function withPresent(lines: readonly RawLine[], customers: Customers): RawLine[] {
  return lines.flatMap((each) => {
    const { id, plan, requests_per_hour, period_requests } = each.members;
    const present = typeof id === 'string' ? customers.get(id) : undefined;
    if (present === undefined) return [each];
    const isPlan = plan === undefined || isPlanOf(present, plan);
    if (isPlan && requests_per_hour === undefined && period_requests === undefined) return [];
    const members = { ...present, ...each.members, plan: isPlan ? (present.current_plan ?? present.plan) : plan };
    return [{ ...each, members }];
  });
}

/** A customer may be on a plan under its former name, or on one that is no longer configured. */
function isPlanOf({ plan, current_plan }: CustomerDocument, name: unknown): boolean {
  return name === plan || name === current_plan;
}

/** Leaves a limit or a suspension alone that ended by itself: it is none, and the customer may have another one. */
function withoutEnded(item: Line<WantedCustomer>, file: string): Line<WantedCustomer> {
  const { temporary_limit, suspended, suspended_until, ...others } = item;
  const hasEnded = (until: string | null | undefined, name: string) => {
    if (!until || Date.parse(until) > Date.now()) return false;
    remark(`${shownFile(file)}:${item.line}: warning: ${name}: has ended, and is left alone; remove it`);
    return true;
  };
  return {
    ...others,
    ...(!hasEnded(temporary_limit?.until, 'temporary_limit') && { temporary_limit }),
    ...(!hasEnded(suspended_until, 'suspended_until') && { suspended, suspended_until }),
  };
}

/** A token that may only read sees the origins of the URLs. */
async function seesWholeUrls(client: AdminClient, customers: Customers): Promise<boolean> {
  return [...customers.values()].every(({ notify_url: url }) => url === null) || (await client.mayWrite());
}

/** Members that differ, as in the admin API. */
function changesOf(item: WantedCustomer, present: CustomerDocument | undefined, seesUrls: boolean) {
  const { id: _, line: __, ...members } = item as Line<WantedCustomer>;
  const wanted: Record<string, unknown> = { ...members, ...suspensionOf(item, present) };
  if (present && isPlanOf(present, wanted.plan)) wanted.plan = present.plan;
  if (!seesUrls && item.notify_url) wanted.notify_url = URL.parse(item.notify_url)?.origin;
  const changes = Object.entries(wanted).flatMap(([name, after]) => {
    const before = (present && Reflect.get(present, name)) ?? (name === 'suspended' ? false : null);
    return after === undefined || isDeepStrictEqual(before, after) ? [] : [[name, { before, after }] as const];
  });
  return Object.fromEntries(changes);
}

/** Returns the suspension that results: an end alone suspends, null is no suspension or no end. */
function suspensionOf({ suspended, suspended_until: until }: WantedCustomer, present: CustomerDocument | undefined) {
  const isSuspended = suspended === undefined ? Boolean(until) || present?.suspended === true : suspended === true;
  const end = until === undefined ? (present?.suspended_until ?? null) : until;
  return { suspended: isSuspended, suspended_until: isSuspended ? end : null };
}

/** Without a client, nothing is changed. */
async function applyOne(
  client: AdminClient | undefined,
  item: WantedCustomer,
  present: CustomerDocument | undefined,
  seesUrls: boolean,
): Promise<ImportResult> {
  const { id } = item;
  const changes = changesOf(item, present, seesUrls);
  if (present && Object.keys(changes).length === 0) return { outcome: 'unchanged' };
  if (client === undefined) return { outcome: present ? 'would be changed' : 'would be created', changes };
  const { suspended, suspended_until, ...members } = Object.fromEntries(
    Object.entries(changes).map(([name, { after }]) => [name, after]),
  );
  // The API takes both at once: a suspension without an end removes the end of an earlier one.
  const isSuspension = suspended !== undefined || suspended_until !== undefined;
  const { suspended_until: end, ...suspension } = suspensionOf(item, present);
  const body = { ...members, ...(isSuspension && { ...suspension, suspended_until: end ?? undefined }) };
  if (present !== undefined) {
    await client.call('PATCH /admin/v1/customers/:id', { id, body });
    return { outcome: 'changed', changes };
  }
  try {
    await client.call('POST /admin/v1/customers', {
      body: { id, ...body } as RequestOf<'POST /admin/v1/customers'>['body'],
    });
    return { outcome: 'created', changes };
  } catch (error) {
    const exists = error instanceof AdminRefusal && error.problem.status === 409;
    const created = exists ? await findCustomer(client, id) : undefined;
    if (created === undefined) throw error;
    return applyOne(client, item, created, seesUrls);
  }
}

async function deleteOne(client: AdminClient, id: string): Promise<ImportResult> {
  try {
    await client.call('DELETE /admin/v1/customers/:id', { id });
  } catch (error) {
    const isGone = error instanceof AdminRefusal && error.problem.status === 404;
    if (!isGone) throw error;
  }
  return { outcome: 'deleted' };
}

function pruneQuestion(customers: readonly CustomerDocument[]): string {
  const ids = customers.slice(0, MOST_NAMED).map(({ id }) => id);
  const more = customers.length - ids.length;
  const names = `${ids.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  return printable(`Delete ${inNumber(customers.length, 'customer')} with all keys and usage: ${names}?`);
}

/** Returns text such as `plan="starter" → "business"`, as in the audit. */
function changesInWords({ changes }: { readonly changes: NonNullable<ImportResult['changes']> }): string {
  return Object.entries(changes)
    .map(
      ([name, { before, after }]) =>
        `${name}=${before === null ? '' : `${JSON.stringify(before)} → `}${JSON.stringify(after)}`,
    )
    .join(' ');
}

function sorted(customers: readonly CustomerDocument[]): CustomerDocument[] {
  return customers.toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

function summaryOf(rows: readonly { readonly outcome: string }[], leftAlone: number): string {
  const counts = new Map<string, number>();
  for (const { outcome } of rows) counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  const texts = [...counts].map(([outcome, count]) => `${count} ${outcome}`);
  const others = leftAlone === 0 ? [] : [`${leftAlone} not in the file and left alone`];
  return `Customers: ${[...texts, ...others].join(', ') || 'none'}.`;
}

/** Prints all customers, sorted by id, as a file for {@link applyCustomers}. */
export async function exportCustomers({ jsonl, ...options }: AdminOptions & { readonly jsonl?: true | undefined }) {
  const client = await connect(options);
  const customers = sorted(await client.list('GET /admin/v1/customers'));
  const present = new Map(customers.map((customer) => [customer.id, customer]));
  const seesUrls = await seesWholeUrls(client, present);
  if (!seesUrls) remark('warning: notify_url is left out: a token that may only read does not see whole URLs');
  const exported = customers.flatMap((customer) => {
    const { members, faults } = exportable(seesUrls ? customer : { ...customer, notify_url: null });
    // Other programs may have written what the admin API refuses.
    for (const fault of faults) remark(printable(`warning: customer ${customer.id}: left out: ${fault}`));
    return members.id === undefined ? [] : [members];
  });
  await print(jsonl ? exported.map((members) => `${printableJson(members, 0)}\n`).join('') : yamlOf(exported));
}
