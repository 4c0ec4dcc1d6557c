/** Fields of the forms for API keys. */
import { html } from 'htm/preact';
import type { KeyDocument } from '../../admin-api/responses.ts';
import { KeyValueDialog } from './key-value-dialog.ts';

export const NAME = { name: 'name', label: 'Name', input: { maxlength: 200 } };

export const EXPIRES = {
  name: 'expires_at',
  label: 'Expires',
  hint: 'In your time zone. Empty: never.',
  kind: 'time',
} as const;

const GRACES = [
  ['0', 'none: the old key stops working now'],
  ['3600', '1 hour'],
  ['86400', '1 day'],
  ['604800', '7 days'],
  ['2592000', '30 days'],
] as const;

/** How long a rotated key goes on. */
export const GRACE = {
  name: 'grace_seconds',
  label: 'The old key works for',
  hint: 'Has it leaked? Choose none.',
  kind: 'number',
  options: GRACES,
  preset: '86400',
} as const;

export const restrictionFields = (key?: Pick<KeyDocument, 'scopes' | 'allowed_addresses'>) => [
  {
    name: 'scopes',
    option: 'scope',
    label: 'Scopes',
    hint: 'Separated by spaces. Empty: all routes.',
    kind: 'list' as const,
    current: key?.scopes,
  },
  {
    name: 'allowed_addresses',
    option: 'allowed_address',
    label: 'Allowed addresses',
    hint: 'Addresses or CIDR blocks, separated by spaces. Empty: all.',
    kind: 'list' as const,
    current: key?.allowed_addresses,
  },
];

export const titleOf = (key: { name: string | null; prefix: string | null; id: string }) =>
  key.name ?? key.prefix ?? key.id;

/** Shows the value of a new key. */
export const showKey = (title: string, key: string, onClose: () => void) =>
  html`<${KeyValueDialog} title=${title} value=${key} onClose=${onClose} />`;
