/** Who changed what, from which value to which, and a way back. */
import { html } from 'htm/preact';
import { useContext, useState } from 'preact/hooks';
import { type AuditRow, auditRowsOf } from '../../api/admin/audit-rows.ts';
import type { AuditAction, AuditDocument } from '../../api/admin/responses.ts';
import { address, call, pathWith, type RequestOf } from '../client/api.ts';
import { badge, CommandMenu, FilterField, inputValue, queryFilter, time } from '../client/components.ts';
import { FormButton, type FormDescription, MayWrite } from '../client/form-dialog.ts';
import { count, DAY_MS, entryOf, localInputTime, tollgate } from '../client/format.ts';
import { useList, useResource } from '../client/resources.ts';
import { at, type Place, setQuery } from '../client/router.ts';
import { type Column, listTable } from '../client/table.ts';
import { CUSTOMER_COLUMN, customerLink, idLink } from './customer-link.ts';

const ACTIONS: Readonly<Record<AuditAction, string>> = {
  'customer.create': 'Customer created',
  'customer.update': 'Customer changed',
  'customer.delete': 'Customer deleted',
  'customer.notify_secret': 'Secret for notices created',
  'usage.reset': 'Usage reset',
  'key.create': 'Key created',
  'key.import': 'Key imported',
  'key.update': 'Key changed',
  'key.revoke': 'Key revoked',
  'key.rotate': 'Key rotated',
  'config.reload': 'Config file reloaded',
  'config.preview': 'Config file previewed',
  'session.create': 'Console login',
  'notice.retry': 'Notice sent again',
  'maintenance.set': 'Maintenance set',
  'notice.test': 'Test notice sent',
  'portal_session.create': 'Link to the portal created',
  'portal_session.open': 'Portal session opened',
  'portal_session.end': 'Portal sessions ended',
  'portal_token.create': 'Token for the portal created',
  'endpoint.disable': 'Endpoint of notices disabled',
  'access.refused': 'Access refused',
};

/** The local date, so many days ago. */
const dateOf = (daysAgo: number) => localInputTime(new Date(Date.now() - daysAgo * DAY_MS).toISOString()).slice(0, 10);

/** The start of a local date as ISO 8601; undefined without one. */
function startOf(date: string | undefined, daysLater = 0): string | undefined {
  const start = new Date(`${date}T00:00`);
  if (Number.isNaN(start.getTime())) return undefined;
  start.setDate(start.getDate() + daysLater);
  return start.toISOString();
}

export function AuditPage({ query }: Place) {
  const { customer, action, from, to } = query;
  const range = { from: startOf(from), to: startOf(to, 1) };
  const date = (name: string, label: string) =>
    html`<label>${label} <input type="date" value=${query[name] ?? ''} onChange=${(event: Event) => setQuery({ [name]: inputValue(event) })} /></label>`;
  const onLogins = (event: Event) =>
    setQuery({ logins: (event.currentTarget as HTMLInputElement).checked ? 'shown' : undefined });
  const days = (label: string, first: number, last: number) =>
    html`<button type="button" onClick=${() => setQuery({ from: dateOf(first), to: dateOf(last) })}>${label}</button>`;
  return html`
    <div class="toolbar">
      <${FilterField} name="customer" value=${customer} aria-label="Customer id" placeholder="Customer id" />
      ${queryFilter('action', 'Action', [['', 'All actions'], ...Object.entries(ACTIONS)], query)}
      ${date('from', 'From')} ${date('to', 'to')}
      ${days('Today', 0, 0)} ${days('Yesterday', 1, 1)} ${days('7 days', 6, 0)}
      <label><input type="checkbox" checked=${query.logins === 'shown'} onChange=${onLogins} /> Console logins</label>
      <span class="actions"><${CommandMenu} line=${tollgate('audit', { customer, action, ...range })} /></span>
    </div>
    <${AuditList} filter=${{ customer, action, ...range }} withCustomer withLogins=${query.logins === 'shown'} />`;
}

type AuditFilter = RequestOf<'GET /admin/v1/audit'>['query'] & object;

interface AuditListProps {
  readonly filter: AuditFilter;
  readonly withCustomer?: boolean;
  /** Logins are many, and change nothing. */
  readonly withLogins?: boolean;
}

function AuditList({ filter, withCustomer = false, withLogins = false }: AuditListProps) {
  const mayWrite = useContext(MayWrite);
  const isFiltered = Boolean(filter.customer || filter.action);
  const isShown = ({ action }: AuditDocument) => withLogins || action === filter.action || action !== 'session.create';
  const rowsOf = (read: readonly AuditDocument[]) => auditRowsOf(read.filter(isShown));
  const entries = useList(address('GET /admin/v1/audit', { query: filter }), {
    isFiltered,
    numberOf: (read) => rowsOf(read).length,
  });
  const undo = (entry: AuditDocument) =>
    undoOf(entry).length > 0 &&
    html`<span class="row-actions"><${FormButton} label="Undo" form=${() => undoForm(entry)} /></span>`;
  const columns: Column<AuditRow>[] = [
    ['When', ({ at }) => time(at)],
    ['Who', ({ actor, from }) => html`<span>${actor} <small class="quiet">${from}</small></span>`],
    ['What', what],
    ...(withCustomer ? [CUSTOMER_COLUMN] : []),
    ['Change', changeOf],
    ...(mayWrite ? [['Undo', undo] as const] : []),
  ];
  const list = { ...entries, rows: rowsOf(entries.rows) };
  const csvOf = (rows: readonly AuditRow[]) => rows.flatMap((row) => row.entries);
  return listTable({
    label: 'Audit',
    list,
    keyOf: ({ id }) => id,
    empty: 'No entries: choose other dates or filters.',
    csvOf,
    columns,
  });
}

function what({ action, key_id: key, entries: { length } }: AuditRow) {
  const text = entryOf(ACTIONS, action) ?? action;
  return html`<span title=${action}>${length > 1 && `${count(length)} × `}${text}</span> ${key && idLink(key)}`;
}

const changeOf = (row: AuditRow) =>
  row.entries.length === 1 ? html`<small>${changes(row)}</small>` : html`<${Entries} row=${row} />`;

/** Of an import, which may have thousands: they are in the page only while they are shown. */
function Entries({ row }: { row: AuditRow }) {
  const { entries } = row;
  const [isOpen, setIsOpen] = useState(false);
  const onToggle = (event: Event) => setIsOpen((event.currentTarget as HTMLDetailsElement).open);
  return html`<details onToggle=${onToggle}><summary>${count(entries.length)} entries</summary>
    ${isOpen && html`<ul class="changes">${entries.map((each) => html`<li>${!row.customer && each.customer && customerLink(each.customer, each.customer_name)}${each.key_id && idLink(each.key_id)} <small>${changes(each)}</small></li>`)}</ul>`}
  </details>`;
}

function changes({ details, before }: AuditDocument) {
  return Object.entries(details ?? {}).map(([name, value]) => {
    const former = before && name in before && html`${valueText(before[name])} → `;
    return html`<div>${name.replaceAll('_', ' ')}: ${former}<strong>${valueText(value)}</strong></div>`;
  });
}

const WORDS: Readonly<Record<string, string>> = { true: 'yes', false: 'no', null: 'none' };
const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

function valueText(value: Values[string] | undefined) {
  if (typeof value === 'number') return count(value);
  if (typeof value !== 'string') return WORDS[String(value)];
  if (/^key_\w+$/.test(value)) return idLink(value);
  const limit = limitIn(value);
  if (limit) return html`${count(limit.requests_per_hour)} until ${time(limit.until)}`;
  return TIME.test(value) ? time(value) : value;
}

type Values = NonNullable<AuditDocument['before']>;

/** Reads `2000 until 2026-11-29T00:00:00.000Z`, as the audit has a limit for a time. */
function limitIn(value: Values[string] | undefined) {
  const [, number, until] = /^(\d+) until (\S+Z)$/.exec(String(value)) ?? [];
  return until === undefined ? undefined : { requests_per_hour: Number(number), until };
}

const UNDONE = [
  'plan',
  'requests_per_hour',
  'period_requests',
  'period_anchor',
  'temporary_limit',
  'suspended',
  'suspended_until',
] as const;

/** The members that can be set back. */
const undoOf = ({ action, before }: AuditDocument) =>
  action === 'customer.update' && before ? UNDONE.filter((name) => name in before) : [];

/** Returns the values without what has ended by itself. */
function unlessEnded(values: Values): Values {
  const hasEnded = (until: Values[string] | undefined) => Date.parse(String(until)) <= Date.now();
  return {
    ...values,
    ...(hasEnded(limitIn(values.temporary_limit)?.until) && { temporary_limit: null }),
    ...(hasEnded(values.suspended_until) && { suspended: false, suspended_until: null }),
  };
}

/** What was before, if it has not ended. `details` has what the change set, `before` only what it changed. */
const formerOf = ({ details, before }: AuditDocument) => unlessEnded({ ...details, ...before });

function undoForm(entry: AuditDocument): FormDescription {
  const id = entry.customer ?? '';
  const names: readonly string[] = undoOf(entry);
  const { temporary_limit, suspended_until, suspended = Boolean(suspended_until), ...rest } = formerOf(entry);
  const others = Object.fromEntries(Object.entries(rest).filter(([name]) => names.includes(name)));
  const limit = names.includes('temporary_limit') ? (limitIn(temporary_limit) ?? null) : undefined;
  const isSuspension = names.includes('suspended') || names.includes('suspended_until');
  const suspension = isSuspension && { suspended, suspended_until: suspended_until ?? undefined };
  // The command line has no value for a member that is unset or false, and one end for both the limit and the suspension.
  const options = {
    ...others,
    temporary_limit: limit === null ? null : limit?.requests_per_hour,
    suspended: isSuspension ? suspended || null : undefined,
    until: limit?.until ?? (isSuspension ? suspended_until : undefined) ?? undefined,
  };
  return {
    title: `Undo this change of ${id}?`,
    label: 'Undo',
    text: html`<${UndoText} entry=${entry} />`,
    ...(!(limit && isSuspension && suspended) && { command: () => ['customers', 'update', id, options] }),
    submit: () =>
      call('PATCH /admin/v1/customers/:id', { id, body: { ...others, temporary_limit: limit, ...suspension } }),
    said: `Changed ${id} back.`,
  };
}

/** Says what was changed once more since, and what is not set back because it has ended. */
function UndoText({ entry }: { entry: AuditDocument }) {
  const { data } = useResource(address('GET /admin/v1/customers/:id', { id: entry.customer ?? '' }));
  const [given, former] = [unlessEnded(entry.details ?? {}), formerOf(entry)];
  const limit = data?.temporary_limit;
  const current = data && { ...data, temporary_limit: limit && `${limit.requests_per_hour} until ${limit.until}` };
  return undoOf(entry).map((name) => {
    const now = current?.[name];
    return html`<span class="undone">${name.replaceAll('_', ' ')}: ${valueText(current ? now : given[name])} → <strong>${valueText(former[name])}</strong>
      ${former[name] !== entry.before?.[name] && html` ${badge('warn', 'it has ended')}`}
      ${current && now !== given[name] && html` ${badge('warn', 'changed again since')}`}</span>`;
  });
}

/** The latest changes of one customer and its keys. */
export function CustomerAudit({ id }: { id: string }) {
  return html`<${AuditList} filter=${{ customer: id }} />
    <p><a href=${pathWith(at('audit'), { customer: id })}>Filter by action and date</a></p>`;
}
