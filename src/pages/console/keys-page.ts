/** All keys: which expire, which are unused. The table of keys, and the forms for their actions. */
import { html } from 'htm/preact';
import type { KeyDocument } from '../../api/admin/responses.ts';
import { address, call, type ReplyOf } from '../client/api.ts';
import { CommandMenu, queryFilter, type SelectOption } from '../client/components.ts';
import { FormButton, type FormDescription } from '../client/form-dialog.ts';
import { tollgate } from '../client/format.ts';
import { EXPIRES, GRACE, limitField, NAME, restrictionFields, showKey, titleOf } from '../client/key-fields.ts';
import { KeyList } from '../client/key-list.ts';
import { type List, useList } from '../client/resources.ts';
import { type Place, searchAddress } from '../client/router.ts';
import { CUSTOMER_COLUMN } from './customer-link.ts';

const DAYS = ['7', '30', '90', '365'];
const choices = (any: string, text: string): readonly SelectOption[] => [
  ['', any],
  ...DAYS.map((days) => [days, `${text} ${days} days`] as const),
];
const EXPIRIES = choices('Any expiry', 'Expires within');
const USES = choices('Any use', 'Unused for');

export function KeysPage({ query }: Place) {
  const { expiring, unused, sort = '' } = query;
  const isFiltered = Boolean(expiring || unused);
  const filter = { expiring_days: expiring, unused_days: unused };
  const list = useList(address('GET /admin/v1/keys', { query: filter }), { isFiltered, isWhole: sort !== '' });
  const command = isFiltered
    ? tollgate('keys', expiring ? 'expiring' : 'unused', { days: expiring || unused })
    : tollgate('keys', 'list');
  return html`
    <div class="toolbar">
      ${queryFilter('expiring', 'Expiry', EXPIRIES, query)}
      ${queryFilter('unused', 'Use', USES, query)}
      <span class="actions">
        <${FormButton} label="New key" form=${() => newKey()} isPrimary />
        ${!(expiring && unused) && html`<${CommandMenu} line=${command} />`}
      </span>
    </div>
    <${KeyTable} list=${list} sort=${sort} withCustomer empty=${isFiltered ? 'No key matches: choose other days.' : 'There are no keys yet. Create the first with “New key”.'} />`;
}

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
  return html`<${KeyList<KeyDocument>} list=${list} owner=${withCustomer ? CUSTOMER_COLUMN : undefined} forms=${FORMS} successor=${successor} sort=${sort} empty=${empty} />`;
}

type NewKey = ReplyOf<'POST /admin/v1/customers/:id/keys'>;

/** Without a customer, the form asks for its id. */
export function newKey(customer?: string): FormDescription<NewKey> {
  const input = { required: true, autofocus: true };
  const ofCustomer = customer === undefined ? [{ name: 'customer', isMember: false, label: 'Customer id', input }] : [];
  return {
    title: 'New key',
    label: 'Create and copy',
    fields: [...ofCustomer, { ...NAME, hint: 'For people. Optional.' }, EXPIRES, limitField(), ...restrictionFields()],
    command: (texts) => ['keys', 'create', customer ?? (texts.customer || 'CUSTOMER')],
    submit: ({ texts, change }) =>
      call('POST /admin/v1/customers/:id/keys', { id: customer ?? texts.customer ?? '', body: change }),
    faultOf: { not_found: 'customer' },
    show: showNewKey,
  };
}

function rotateKey(key: KeyDocument): FormDescription<NewKey> {
  return {
    title: `Rotate ${titleOf(key)}`,
    label: 'Rotate and copy',
    text: `A new key replaces this one. Both count against the one quota of ${key.customer}.`,
    fields: [GRACE],
    command: () => ['keys', 'rotate', key.id],
    submit: ({ change }) => call('POST /admin/v1/keys/:keyId/rotate', { keyId: key.id, body: change }),
    show: showNewKey,
  };
}

function changeKey(key: KeyDocument): FormDescription {
  return {
    title: `Change ${titleOf(key)}`,
    label: 'Save',
    fields: [
      { ...NAME, current: key.name },
      { ...EXPIRES, current: key.expires_at },
      limitField(key),
      ...restrictionFields(key),
    ],
    command: () => ['keys', 'update', key.id],
    submit: ({ change }) => call('PATCH /admin/v1/keys/:keyId', { keyId: key.id, body: change }),
    said: `Changed ${titleOf(key)}.`,
  };
}

function revokeKey(key: KeyDocument): FormDescription {
  return {
    title: `Revoke ${titleOf(key)}?`,
    label: 'Revoke key',
    isDangerous: true,
    text: html`Requests with this key of <strong>${key.customer}</strong> get 401 within a second. This cannot be undone.`,
    command: () => ['keys', 'revoke', key.id],
    submit: () => call('DELETE /admin/v1/keys/:keyId', { keyId: key.id }),
    said: `Revoked ${titleOf(key)}.`,
  };
}

const showNewKey = ({ key = '', customer }: NewKey, onClose: () => void) =>
  showKey(`New key of ${customer}`, key, onClose);
