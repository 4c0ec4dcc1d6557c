/** Finds customers: by id or name, by plan, near their limits, suspended, or with keys that expire soon. */
import { html } from 'htm/preact';
import { useEffect, useState } from 'preact/hooks';
import type { ConfigDocument, CustomerDocument, KeyDocument, NearCustomerDocument } from '../../admin-api/responses.ts';
import { pathWith } from '../../pages/client/api.ts';
import { badge, Choices, Command, inputValue, loaded, SearchForm, Select } from '../../pages/client/components.ts';
import { FormButton } from '../../pages/client/form-dialog.ts';
import { count, tollgate } from '../../pages/client/format.ts';
import { POLL_MS, useList, useResource } from '../../pages/client/resources.ts';
import { type Place, setQuery } from '../../pages/client/router.ts';
import { listTable } from '../../pages/client/table.ts';
import { newCustomer } from './customer-forms.ts';
import { customerLink, customerState } from './customer-link.ts';
import { KeyTable } from './key-table.ts';
import { nearTable } from './overview-page.ts';
import { useMayWrite } from './session.ts';

type View = 'near' | 'suspended' | 'expiring' | undefined;

const VIEWS = [
  [undefined, 'All'],
  ['near', 'Near the limit'],
  ['suspended', 'Suspended'],
  ['expiring', 'With expiring keys'],
] as const;

const EXPIRING_DAYS = 30;
const TYPING_PAUSE_MS = 300;

export function CustomersPage({ query }: Place) {
  const mayWrite = useMayWrite();
  const config = useResource<ConfigDocument>('/admin/v1/config');
  const view = VIEWS.map(([name]) => name).find((name) => name === query.view);
  const plans = Object.keys(config.data?.plans ?? {});
  return html`
    <div class="toolbar">
      <${SearchField} value=${query.search ?? ''} />
      <${Select} aria-label="Plan" options=${[['', 'All plans'], ...plans.map((plan) => [plan])]} value=${query.plan}
        onChange=${(event: Event) => setQuery({ plan: inputValue(event), view: undefined })} />
      <${Choices} label="Show" options=${VIEWS} value=${view}
        onChange=${(name: View) => setQuery({ view: name, search: undefined, plan: undefined })} />
      ${mayWrite && html`<${FormButton} label="New customer" form=${() => newCustomer(plans)} isPrimary disabled=${config.data === undefined} />`}
    </div>
    ${view === 'near' && html`<${Near} />`}
    ${view === 'expiring' && html`<${Expiring} />`}
    ${view !== 'near' && view !== 'expiring' && html`<${Customers} search=${query.search} plan=${query.plan} suspended=${view === 'suspended'} />`}`;
}

/** Searches when typing pauses, and at once with Enter. */
function SearchField({ value }: { value: string }) {
  const [text, setText] = useState(value);
  const search = (to: string) => setQuery({ search: to || undefined, view: undefined });
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text.trim() === value) return;
    const timer = setTimeout(() => search(text.trim()), TYPING_PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return html`<${SearchForm} text=${text} onText=${setText} onSearch=${search}
    aria-label="Search by the beginning of id or name" placeholder="Beginning of id or name" />`;
}

interface Filters {
  readonly search?: string | undefined;
  readonly plan?: string | undefined;
  readonly suspended: boolean;
}

export function Customers({ search, plan, suspended }: Filters) {
  const isFiltered = Boolean(search || plan || suspended);
  const path = pathWith('/admin/v1/customers', { search, plan, suspended: suspended ? 'true' : undefined });
  const list = useList<CustomerDocument>(path, { isFiltered });
  const command = tollgate('customers', 'list', { search, plan, suspended });
  return html`
    ${search && CUSTOMER_ID.test(search) && html`<${ExactMatch} id=${search} />`}
    ${listTable({
      label: 'Customers',
      list,
      empty: search
        ? `No customer matches: of none does the id, or a word of the name, begin with ${search}.`
        : isFiltered
          ? 'No customer matches.'
          : 'There are no customers yet.',
      columns: [
        ['Customer', ({ id, name }) => customerLink(id, name)],
        ['Plan', ({ plan, current_plan: current }) => current ?? html`${plan} ${badge('bad', 'not configured')}`],
        ['Requests per hour', ({ limit }) => (limit === null ? badge('bad', 'no limit') : count(limit)), 'number'],
        ['Set by', ({ limit_source }) => limit_source ?? '–'],
        ['State', customerState],
      ],
    })}
    <${Command} line=${command} />`;
}

/** Other texts cannot be ids. */
const CUSTOMER_ID = /^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$/;

/** The customer with exactly this id, which is found at once, however long the search takes. */
function ExactMatch({ id }: { id: string }) {
  const { data } = useResource<CustomerDocument>(`/admin/v1/customers/${id}`);
  if (data === undefined) return null;
  return html`<p class="exact">Exact match: ${customerLink(data.id, data.name)}</p>`;
}

function Near() {
  const near = useResource<NearCustomerDocument[]>('/admin/v1/usage/near?limit=100', POLL_MS);
  return html`<div>${loaded(near, nearTable)}</div>
    <${Command} line=${tollgate('usage', 'near')} />`;
}

function Expiring() {
  const path = `/admin/v1/keys?expiring_days=${EXPIRING_DAYS}`;
  const list = useList<KeyDocument>(path, { isFiltered: true });
  return html`<${KeyTable} list=${list} withCustomer empty=${`No key expires within ${EXPIRING_DAYS} days.`} />
    <${Command} line=${tollgate('keys', 'expiring', { days: EXPIRING_DAYS })} />`;
}
