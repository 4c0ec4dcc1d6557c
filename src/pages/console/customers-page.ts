/** Finds customers by id or name, plan, state and usage. */
import { html } from 'htm/preact';
import type { CustomerUsageDocument } from '../../api/admin/responses.ts';
import { address } from '../client/api.ts';
import { badge, CommandMenu, FilterField, queryFilter, usageBar } from '../client/components.ts';
import { FormButton } from '../client/form-dialog.ts';
import { count, shortened, tollgate } from '../client/format.ts';
import { useList, useResource } from '../client/resources.ts';
import { type Place, setQuery } from '../client/router.ts';
import { type Column, listTable } from '../client/table.ts';
import { newCustomer } from './customer-forms.ts';
import { customerLink, limitSource, planText, suspendedBadge } from './customer-link.ts';

const STATES = [
  ['', 'Any state'],
  ['false', 'Active'],
  ['true', 'Suspended'],
] as const;
const USAGES = [
  ['', 'Any usage'],
  ['80', 'From 80 %'],
  ['95', 'From 95 %'],
  ['100', 'Used up'],
] as const;

export function CustomersPage({ query }: Place) {
  const config = useResource(address('GET /admin/v1/config', {}));
  const plans = Object.keys(config.data?.plans ?? {});
  return html`
    <div class="toolbar">
      <${FilterField} name="search" value=${query.search} aria-label="Search by name or id" placeholder="Name or id" />
      ${queryFilter('plan', 'Plan', [['', 'All plans'], ...plans.map((plan) => [plan] as const)], query)}
      ${queryFilter('suspended', 'State', STATES, query)}
      ${queryFilter('above', 'Usage', USAGES, query)}
      <span class="actions">
        ${plans.length > 0 && html`<${FormButton} label="New customer" form=${() => newCustomer(config.data?.plans ?? {})} isPrimary />`}
        <${CommandMenu} line=${customersCommand(query)} />
      </span>
    </div>
    <${Customers} ...${query} />`;
}

const COLUMNS: readonly Column<CustomerUsageDocument>[] = [
  [
    'Customer',
    ({ customer, customer_name: name, suspended }) =>
      html`<span class="customer"><span>${customerLink(customer, name)}${suspendedBadge({ suspended })}</span></span>`,
    undefined,
    ({ customer, customer_name: name }) => name ?? customer,
  ],
  ['Id', ({ customer }) => html`<code class="quiet id" title=${customer}>${shortened(customer)}</code>`],
  [
    'Plan',
    (row) =>
      html`${planText(row)}${row.limit_source !== 'plan' && row.limit_source && html` <small class="quiet">${limitSource(row)}</small>`}`,
    undefined,
    ({ plan }) => plan,
  ],
  [
    'Used',
    ({ used, limit }) => (limit === null ? badge('bad', 'no limit') : usageBar({ used, limit })),
    'number',
    ({ percent }) => percent,
  ],
];

const PERIOD_COLUMN: Column<CustomerUsageDocument> = [
  'Day or month',
  ({ period }) => period && usageBar(period),
  'number',
  ({ period }) => period && period.used / period.limit,
];

export function Customers({ search, plan, suspended, above, sort }: Place['query']) {
  const isFiltered = Boolean(search || plan || suspended || above);
  const filter = { search, plan, suspended, above };
  const list = useList(address('GET /admin/v1/usage', { query: filter }), { isFiltered, isWhole: Boolean(sort) });
  return html`
    ${search && CUSTOMER_ID.test(search) && html`<${ExactMatch} id=${search} />`}
    ${listTable({
      label: 'Customers',
      list,
      keyOf: ({ customer }) => customer,
      sort: sort ?? '',
      onSort: (column) => setQuery({ sort: column }),
      total: (rows) => `, ${count(rows.reduce((sum, { used }) => sum + used, 0))} requests in the last hour`,
      empty: isFiltered
        ? `No customer matches${search ? ` “${search}”. Search for a part of it` : ': choose other filters'}.`
        : 'There are no customers yet. Create the first with “New customer”.',
      columns: list.rows.some(({ period }) => period) ? [...COLUMNS, PERIOD_COLUMN] : COLUMNS,
    })}`;
}

export const customersCommand = ({ search, plan, suspended, above }: Place['query']) =>
  above
    ? tollgate('usage', 'near', { above })
    : tollgate('customers', 'list', { search, plan, suspended: suspended && (suspended === 'true' || null) });

/** Other texts cannot be ids. */
const CUSTOMER_ID = /^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$/;

/** The customer with exactly this id, which is found at once, however long the search takes. */
function ExactMatch({ id }: { id: string }) {
  const { data } = useResource(address('GET /admin/v1/customers/:id', { id }));
  if (data === undefined) return null;
  return html`<p class="exact">Exact match: ${customerLink(data.id, data.name)}</p>`;
}
