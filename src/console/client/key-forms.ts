/** Actions on API keys. */
import { html } from 'htm/preact';
import type { GeneratedKeyDocument, KeyDocument } from '../../admin-api/responses.ts';
import { call, customerPath } from './api.ts';
import { NAME } from './customer-forms.ts';
import type { FormDescription } from './form-dialog.ts';
import { KeyValueDialog } from './key-value-dialog.ts';

const pathOf = (key: KeyDocument) => `/admin/v1/keys/${encodeURIComponent(key.id)}`;
const titleOf = (key: KeyDocument) => key.name ?? key.prefix ?? key.id;

const EXPIRES = {
  name: 'expires_at',
  label: 'Expires',
  hint: 'In your time zone. Empty: never.',
  kind: 'time',
} as const;

/** Without a customer, the form asks for its id. */
export function newKey(customer?: string): FormDescription<GeneratedKeyDocument> {
  const input = { required: true, autofocus: true };
  const ofCustomer = customer === undefined ? [{ name: 'customer', isMember: false, label: 'Customer id', input }] : [];
  return {
    title: 'New key',
    label: 'Create and copy',
    fields: [...ofCustomer, { ...NAME, hint: 'For people. Optional.' }, EXPIRES],
    command: (texts) => ['keys', 'create', customer ?? (texts.customer || 'CUSTOMER')],
    submit: ({ texts, change }) =>
      call('POST', `${customerPath(customer ?? texts.customer ?? '')}/keys`, { json: change }),
    show: showKey,
  };
}

const GRACES = [
  ['0', 'none: the old key stops working now'],
  ['3600', '1 hour'],
  ['86400', '1 day'],
  ['604800', '7 days'],
  ['2592000', '30 days'],
] as const;

export function rotateKey(key: KeyDocument): FormDescription<GeneratedKeyDocument> {
  const grace = { name: 'grace_seconds', label: 'The old key works for', hint: 'Has it leaked? Choose none.' } as const;
  return {
    title: `Rotate ${titleOf(key)}`,
    label: 'Rotate and copy',
    text: `A new key replaces this one. Both count against the one quota of ${key.customer}.`,
    fields: [{ ...grace, kind: 'number', options: GRACES, preset: '86400' }],
    command: () => ['keys', 'rotate', key.id],
    submit: ({ change }) => call('POST', `${pathOf(key)}/rotate`, { json: change }),
    show: showKey,
  };
}

export function changeKey(key: KeyDocument): FormDescription {
  return {
    title: `Change ${titleOf(key)}`,
    label: 'Save',
    fields: [
      { ...NAME, current: key.name },
      { ...EXPIRES, current: key.expires_at },
    ],
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

/** Shows the value of a new key. */
const showKey = ({ key, customer }: GeneratedKeyDocument, onClose: () => void) =>
  html`<${KeyValueDialog} title=${`New key of ${customer}`} value=${key} onClose=${onClose} />`;
