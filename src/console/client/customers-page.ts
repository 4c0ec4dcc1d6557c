/** Finds customers: by id or name, by plan, near their limits, suspended, or with keys that expire soon. */
import { html } from 'htm/preact';
import { useEffect, useState } from 'preact/hooks';
import type { ConfigDocument, CustomerDocument, KeyDocument, NearCustomerDocument } from '../../admin-api/responses.ts';
import { pathWith } from './api.ts';
import { Badge, Choices, Command, CustomerLink, inputValue, Loaded } from './components.ts';
import { NewCustomerDialog } from './customer-dialogs.ts';
import { count, tollgate } from './format.ts';
import { KeyTable } from './key-table.ts';
import { NearTable } from './overview-page.ts';
import { POLL_MS, ROWS_AT_ONCE, useList, useResource } from './resources.ts';
import { type Place, setQuery } from './router.ts';
import { useMayWrite } from './session.ts';
import { ListTable } from './table.ts';

type View = 'near' | 'suspended' | 'expiring' | undefined;

const VIEWS = [
  [undefined, 'All'],
  ['near', 'Near the limit'],
  ['suspended', 'Suspended'],
  ['expiring', 'With expiring keys'],
] as const;

const EXPIRING_DAYS = 30;
/** A filtered page has few rows, so many records are read at once. */
const FILTERED_PAGE_SIZE = 200;
const TYPING_PAUSE_MS = 300;

export function CustomersPage({ query }: Place) {
  const mayWrite = useMayWrite();
  const [isCreating, setIsCreating] = useState(false);
  const config = useResource<ConfigDocument>('/admin/v1/config');
  const view = VIEWS.map(([name]) => name).find((name) => name === query.view);
  const plans = Object.keys(config.data?.plans ?? {});
  return html`
    <div class="toolbar">
      <${SearchField} value=${query.search ?? ''} />
      <select aria-label="Plan" onChange=${(event: Event) => setQuery({ plan: inputValue(event), view: undefined })}>
        <option value="">All plans</option>
        ${plans.map((plan) => html`<option value=${plan} selected=${plan === query.plan}>${plan}</option>`)}
      </select>
      <${Choices} label="Show" options=${VIEWS} value=${view}
        onChange=${(name: View) => setQuery({ view: name, search: undefined, plan: undefined })} />
      ${mayWrite && html`<button type="button" class="primary" onClick=${() => setIsCreating(true)}>New customer</button>`}
    </div>
    ${view === 'near' && html`<${Near} />`}
    ${view === 'expiring' && html`<${Expiring} />`}
    ${view !== 'near' && view !== 'expiring' && html`<${Customers} search=${query.search} plan=${query.plan} suspended=${view === 'suspended'} />`}
    ${isCreating && html`<${NewCustomerDialog} plans=${plans} onClose=${() => setIsCreating(false)} />`}`;
}

/** Searches when typing pauses, and at once with Enter. */
function SearchField({ value }: { value: string }) {
  const [text, setText] = useState(value);
  const search = (to: string) => setQuery({ search: to.trim() || undefined, view: undefined });
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text.trim() === value) return;
    const timer = setTimeout(() => search(text), TYPING_PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const onSubmit = (event: Event) => {
    event.preventDefault();
    search(text);
  };
  return html`<form role="search" onSubmit=${onSubmit}>
    <input type="search" aria-label="Search by the beginning of id or name" placeholder="Beginning of id or name"
      value=${text} onInput=${(event: Event) => setText(inputValue(event))} />
  </form>`;
}

interface Filters {
  readonly search?: string | undefined;
  readonly plan?: string | undefined;
  readonly suspended: boolean;
}

function Customers({ search, plan, suspended }: Filters) {
  const isFiltered = Boolean(search || plan || suspended);
  const path = pathWith('/admin/v1/customers', { search, plan, suspended: suspended ? 'true' : undefined });
  const pageSize = isFiltered ? FILTERED_PAGE_SIZE : ROWS_AT_ONCE;
  const list = useList<CustomerDocument>(path, { pageSize });
  const command = tollgate(
    'customers',
    'list',
    ...(search ? ['--search', search] : []),
    ...(plan ? ['--plan', plan] : []),
    suspended ? '--suspended' : undefined,
  );
  return html`
    ${search && CUSTOMER_ID.test(search) && html`<${ExactMatch} id=${search} />`}
    <${ListTable} label="Customers" list=${list} isFiltered=${isFiltered} keyOf=${(row: CustomerDocument) => row.id}
      empty=${isFiltered ? 'No customer matches.' : 'There are no customers yet.'} columns=${COLUMNS} />
    <${Command} line=${command} />`;
}

/** Other texts cannot be ids. */
const CUSTOMER_ID = /^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$/;

/** The customer with exactly this id, which is found at once, however long the search takes. */
function ExactMatch({ id }: { id: string }) {
  const { data } = useResource<CustomerDocument>(`/admin/v1/customers/${id}`);
  if (data === undefined) return null;
  return html`<p class="exact">Exact match: <${CustomerLink} id=${data.id} /> ${data.name}</p>`;
}

const COLUMNS = [
  { title: 'Customer', cell: ({ id }: CustomerDocument) => html`<${CustomerLink} id=${id} />` },
  { title: 'Name', cell: ({ name }: CustomerDocument) => name ?? '' },
  {
    title: 'Plan',
    cell: (row: CustomerDocument) =>
      row.current_plan === null ? html`${row.plan} <${Badge} tone="bad">not configured<//>` : row.current_plan,
  },
  {
    title: 'Requests per hour',
    isNumber: true,
    cell: ({ limit }: CustomerDocument) => (limit === null ? html`<${Badge} tone="bad">no limit<//>` : count(limit)),
  },
  { title: 'Set by', cell: ({ limit_source }: CustomerDocument) => limit_source ?? '–' },
  {
    title: 'State',
    cell: ({ suspended }: CustomerDocument) =>
      suspended ? html`<${Badge} tone="bad">suspended<//>` : html`<${Badge} tone="good">active<//>`,
  },
];

function Near() {
  const near = useResource<NearCustomerDocument[]>('/admin/v1/usage/near?limit=100', POLL_MS);
  return html`<div><${Loaded} resource=${near}>${(rows: NearCustomerDocument[]) => html`<${NearTable} rows=${rows} />`}<//></div>
    <${Command} line=${tollgate('usage', 'near')} />`;
}

function Expiring() {
  const path = `/admin/v1/keys?expiring_days=${EXPIRING_DAYS}`;
  const list = useList<KeyDocument>(path, { pageSize: FILTERED_PAGE_SIZE });
  return html`<${KeyTable} list=${list} withCustomer isFiltered empty=${`No key expires within ${EXPIRING_DAYS} days.`} />
    <${Command} line=${tollgate('keys', 'expiring', '--days', EXPIRING_DAYS)} />`;
}
