/** How a customer is shown. */
import { html } from 'htm/preact';
import type { CustomerDocument } from '../../api/admin/responses.ts';
import { badge } from '../client/components.ts';
import { shortened } from '../client/format.ts';
import { at, searchAddress } from '../client/router.ts';
import type { Column } from '../client/table.ts';

/** The name, or the id of a customer without one. */
export const customerLink = (id: string, name: string | null = null) =>
  html`<a class="name" href=${at('customers', id)} title=${name ? `${name}, ${id}` : id}>${name || shortened(id)}</a>`;

/** Of a key or a request, to what the search finds of it. */
export const idLink = (id: string) =>
  html`<a href=${searchAddress(id)} title=${id}><code class="id">${shortened(id)}</code></a>`;

interface NamedCustomer {
  /** Null: of several customers. */
  readonly customer: string | null;
  readonly customer_name: string | null;
}

export const CUSTOMER_COLUMN: Column<NamedCustomer> = [
  'Customer',
  ({ customer: id, customer_name: name }) =>
    id &&
    html`<span class="customer">${customerLink(id, name)} <small>${name ? shortened(id) : 'no name'}</small></span>`,
  undefined,
  ({ customer, customer_name: name }) => name ?? customer,
];

export function suspendedBadge({ suspended }: { suspended: boolean }) {
  return suspended && html` ${badge('bad', 'suspended')}`;
}

/** The plan of a record, unless it was renamed or dropped since. */
export function planText({ plan, current_plan: current }: Pick<CustomerDocument, 'plan' | 'current_plan'>) {
  return current ?? html`${plan} ${badge('bad', 'not configured')}`;
}

const LIMIT_SOURCES = { override: 'override', temporary: 'temporary', customer: 'own limit', plan: 'plan' };

export function limitSource({ limit_source: source }: Pick<CustomerDocument, 'limit_source'>) {
  return source === null ? '–' : LIMIT_SOURCES[source];
}
