/** The table of keys, with the actions that the session allows. */
import { html } from 'htm/preact';
import type { KeyDocument } from '../../admin-api/responses.ts';
import { KeyList } from '../../pages/client/key-list.ts';
import type { List } from '../../pages/client/resources.ts';
import type { Column } from '../../pages/client/table.ts';
import { customerLink } from './customer-link.ts';
import { changeKey, revokeKey, rotateKey } from './key-forms.ts';
import { useMayWrite } from './session.ts';

const FORMS = { Rotate: rotateKey, Change: changeKey, Revoke: revokeKey };
const OWNER: Column<KeyDocument> = ['Customer', ({ customer, customer_name: name }) => customerLink(customer, name)];

interface KeyTableProps {
  readonly list: List<KeyDocument>;
  readonly withCustomer?: boolean;
  readonly empty: string;
}

export function KeyTable({ list, withCustomer = false, empty }: KeyTableProps) {
  const forms = useMayWrite() ? FORMS : undefined;
  return html`<${KeyList<KeyDocument>} list=${list} owner=${withCustomer ? OWNER : undefined} forms=${forms} empty=${empty} />`;
}
