/** Finds customers by id or name, plan, state and usage. */
import { html } from 'htm/preact';
import type { CustomerUsageDocument } from '../../api/admin/responses.ts';
import { address } from '../client/api.ts';
import { badge, Command, FilterField, queryFilter, usageBar } from '../client/components.ts';
import { FormButton } from '../client/form-dialog.ts';
import { count, tollgate } from '../client/format.ts';
import { useList, useResource } from '../client/resources.ts';
import { type Place, setQuery } from '../client/router.ts';
import { type Column, listTable } from '../client/table.ts';
import { newCustomer } from './customer-forms.ts';
import { CUSTOMER_COLUMN, customerLink, customerState, limitSource, planText } from './customer-link.ts';

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
      <${FilterField} name="search" value=${query.search} aria-label="Search by the beginning of id or name" placeholder="Beginning of id or name" />
      ${queryFilter('plan', 'Plan', [['', 'All plans'], ...plans.map((plan) => [plan] as const)], query)}
      ${queryFilter('suspended', 'State', STATES, query)}
      ${queryFilter('above', 'Usage', USAGES, query)}
      ${plans.length > 0 && html`<${FormButton} label="New customer" form=${() => newCustomer(config.data?.plans ?? {})} isPrimary />`}
    </div>
    <${Customers} ...${query} />`;
}

const COLUMNS: readonly Column<CustomerUsageDocument>[] = [
  CUSTOMER_COLUMN,
  ['Plan', planText, undefined, ({ plan }) => plan],
  [
    'Used',
    ({ used, limit }) => (limit === null ? badge('bad', 'no limit') : usageBar({ used, limit })),
    'number',
    ({ percent }) => percent,
  ],
  ['Limit set by', limitSource],
  ['State', customerState],
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
  const command = above
    ? tollgate('usage', 'near', { above })
    : tollgate('customers', 'list', { search, plan, suspended: suspended && (suspended === 'true' || null) });
  return html`
    ${search && CUSTOMER_ID.test(search) && html`<${ExactMatch} id=${search} />`}
    ${listTable({
      label: 'Customers',
      list,
      keyOf: ({ customer }) => customer,
      sort: sort ?? '',
      onSort: (column) => setQuery({ sort: column }),
      total: (rows) => `, ${count(rows.reduce((sum, { used }) => sum + used, 0))} requests in the last hour`,
      empty:
        search && !plan && !suspended && !above
          ? `No customer matches: of none does the id, or a word of the name, begin with ${search}.`
          : isFiltered
            ? 'No customer matches.'
            : 'There are no customers yet.',
      columns: list.rows.some(({ period }) => period) ? COLUMNS.toSpliced(3, 0, PERIOD_COLUMN) : COLUMNS,
    })}
    <${Command} line=${command} />`;
}

/** Other texts cannot be ids. */
const CUSTOMER_ID = /^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$/;

/** The customer with exactly this id, which is found at once, however long the search takes. */
function ExactMatch({ id }: { id: string }) {
  const { data } = useResource(address('GET /admin/v1/customers/:id', { id }));
  if (data === undefined) return null;
  return html`<p class="exact">Exact match: ${customerLink(data.id, data.name)}</p>`;
}
