/** Actions on API keys. */
import { html } from 'htm/preact';
import type { GeneratedKeyDocument, KeyDocument } from '../../admin-api/responses.ts';
import { call } from '../../pages/client/api.ts';
import type { FormDescription } from '../../pages/client/form-dialog.ts';
import { EXPIRES, GRACE, NAME, restrictionFields, showKey, titleOf } from '../../pages/client/key-fields.ts';
import { customerPath } from './customer-link.ts';

const pathOf = (key: KeyDocument) => `/admin/v1/keys/${encodeURIComponent(key.id)}`;

/** Without a customer, the form asks for its id. */
export function newKey(customer?: string): FormDescription<GeneratedKeyDocument> {
  const input = { required: true, autofocus: true };
  const ofCustomer = customer === undefined ? [{ name: 'customer', isMember: false, label: 'Customer id', input }] : [];
  return {
    title: 'New key',
    label: 'Create and copy',
    fields: [...ofCustomer, { ...NAME, hint: 'For people. Optional.' }, EXPIRES, ...restrictionFields()],
    command: (texts) => ['keys', 'create', customer ?? (texts.customer || 'CUSTOMER')],
    submit: ({ texts, change }) =>
      call('POST', `${customerPath(customer ?? texts.customer ?? '')}/keys`, { json: change }),
    faultOf: { not_found: 'customer' },
    show: showNewKey,
  };
}

export function rotateKey(key: KeyDocument): FormDescription<GeneratedKeyDocument> {
  return {
    title: `Rotate ${titleOf(key)}`,
    label: 'Rotate and copy',
    text: `A new key replaces this one. Both count against the one quota of ${key.customer}.`,
    fields: [GRACE],
    command: () => ['keys', 'rotate', key.id],
    submit: ({ change }) => call('POST', `${pathOf(key)}/rotate`, { json: change }),
    show: showNewKey,
  };
}

export function changeKey(key: KeyDocument): FormDescription {
  return {
    title: `Change ${titleOf(key)}`,
    label: 'Save',
    fields: [{ ...NAME, current: key.name }, { ...EXPIRES, current: key.expires_at }, ...restrictionFields(key)],
    command: () => ['keys', 'update', key.id],
    submit: ({ change }) => call('PATCH', pathOf(key), { json: change }),
    said: `Changed ${titleOf(key)}.`,
  };
}

export function revokeKey(key: KeyDocument): FormDescription {
  return {
    title: `Revoke ${titleOf(key)}?`,
    label: 'Revoke key',
    isDangerous: true,
    text: html`Requests with this key of <strong>${key.customer}</strong> get 401 within a second. This cannot be undone.`,
    command: () => ['keys', 'revoke', key.id],
    submit: () => call('DELETE', pathOf(key)),
    said: `Revoked ${titleOf(key)}.`,
  };
}

const showNewKey = ({ key, customer }: GeneratedKeyDocument, onClose: () => void) =>
  showKey(`New key of ${customer}`, key, onClose);
