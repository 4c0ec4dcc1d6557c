/** Names of customers with links, and the path of a customer in the admin API. */
import { html } from 'htm/preact';
import { badge } from '../../pages/client/components.ts';
import { shortened } from '../../pages/client/format.ts';
import { at } from '../../pages/client/router.ts';

export const customerPath = (id: string) => `/admin/v1/customers/${encodeURIComponent(id)}`;

/** The id with the name beside it, on one line. */
export function customerLink(id: string, name?: string | null) {
  return html`<span class="customer" title=${name ? `${id}, ${name}` : id}>
    <a class="name" href=${at('customers', id)}>${shortened(id)}</a>${name && html` <span class="quiet">${name}</span>`}</span>`;
}

export function customerState({ suspended }: { suspended: boolean }) {
  return suspended ? badge('bad', 'suspended') : badge('good', 'active');
}
