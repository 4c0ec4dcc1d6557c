/** The table of keys, with the actions that the session allows. */
import { html } from 'htm/preact';
import type { KeyDocument } from '../../admin-api/responses.ts';
import { KeyList } from '../../pages/client/key-list.ts';
import type { List } from '../../pages/client/resources.ts';
import { searchAddress } from '../../pages/client/router.ts';
import { CUSTOMER_COLUMN } from './customer-link.ts';
import { changeKey, revokeKey, rotateKey } from './key-forms.ts';
import { useMayWrite } from './session.ts';

const FORMS = { Rotate: rotateKey, Change: changeKey, Revoke: revokeKey };
const successor = (id: string, name: string) => html`<a href=${searchAddress(id)} title=${id}><code>${name}</code></a>`;

interface KeyTableProps {
  readonly list: List<KeyDocument>;
  readonly withCustomer?: boolean;
  readonly empty: string;
  /** Of a list that can be sorted: see {@link listTable}. */
  readonly sort?: string;
}

export function KeyTable({ list, withCustomer = false, empty, sort }: KeyTableProps) {
  const forms = useMayWrite() ? FORMS : undefined;
  return html`<${KeyList<KeyDocument>} list=${list} owner=${withCustomer ? CUSTOMER_COLUMN : undefined} forms=${forms} successor=${successor} sort=${sort} empty=${empty} />`;
}
