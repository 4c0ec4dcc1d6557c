/** How a customer is shown. */
import { html } from 'htm/preact';
import type { CustomerDocument } from '../../api/admin/responses.ts';
import { badge } from '../client/components.ts';
import { shortened } from '../client/format.ts';
import { at } from '../client/router.ts';
import type { Column } from '../client/table.ts';

/** The id with the name beside it, on one line. */
export function customerLink(id: string, name?: string | null) {
  return html`<span class="customer" title=${name ? `${id}, ${name}` : id}>
    <a class="name" href=${at('customers', id)}>${shortened(id)}</a>${name && html` <span class="quiet">${name}</span>`}</span>`;
}

interface NamedCustomer {
  /** Null: of several customers. */
  readonly customer: string | null;
  readonly customer_name: string | null;
}

export const CUSTOMER_COLUMN: Column<NamedCustomer> = [
  'Customer',
  ({ customer, customer_name: name }) => customer && customerLink(customer, name),
  undefined,
  ({ customer, customer_name: name }) => name ?? customer,
];

export function customerState({ suspended }: { suspended: boolean }) {
  return suspended ? badge('bad', 'suspended') : badge('good', 'active');
}

/** The plan of a record, unless it was renamed or dropped since. */
export function planText({ plan, current_plan: current }: Pick<CustomerDocument, 'plan' | 'current_plan'>) {
  return current ?? html`${plan} ${badge('bad', 'not configured')}`;
}

const LIMIT_SOURCES = { override: 'override', temporary: 'temporary', customer: 'own limit', plan: 'plan' };

export function limitSource({ limit_source: source }: Pick<CustomerDocument, 'limit_source'>) {
  return source === null ? '–' : LIMIT_SOURCES[source];
}
