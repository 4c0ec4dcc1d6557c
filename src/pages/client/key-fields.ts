/** Fields of the forms for API keys. */
import { html } from 'htm/preact';
import type { KeyDocument } from '../../admin-api/responses.ts';
import type { FormInput } from './form-dialog.ts';
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

type Restrictions = Pick<KeyDocument, 'scopes' | 'allowed_addresses'>;

/** Their texts are lists: see {@link restrictionsOf}. */
export const restrictionFields = (key?: Restrictions) => [
  {
    name: 'scopes',
    isMember: false,
    label: 'Scopes',
    hint: 'Separated by spaces. Empty: all routes.',
    current: key?.scopes?.join(' ') ?? null,
  },
  {
    name: 'allowed_addresses',
    isMember: false,
    label: 'Allowed addresses',
    hint: 'Addresses or CIDR blocks, separated by spaces. Empty: all.',
    current: key?.allowed_addresses?.join(' ') ?? null,
  },
];

/** The lists that the texts change, for the body and as options of the command line. */
export function restrictionsOf(texts: FormInput['texts'], key?: Restrictions) {
  const json: Record<string, readonly string[] | null> = {};
  const options: string[] = [];
  for (const [name, option] of [
    ['scopes', 'scope'],
    ['allowed_addresses', 'allowed-address'],
  ] as const) {
    const items = (texts[name] ?? '').split(/[\s,]+/).filter(Boolean);
    if (items.join(' ') === (key?.[name] ?? []).join(' ')) continue;
    json[name] = items.length > 0 ? items : null;
    options.push(...(items.length > 0 ? items.flatMap((item) => [`--${option}`, item]) : [`--no-${option}`]));
  }
  return { json, options };
}

export const titleOf = (key: { name: string | null; prefix: string | null; id: string }) =>
  key.name ?? key.prefix ?? key.id;

/** Shows the value of a new key. */
export const showKey = (title: string, key: string, onClose: () => void) =>
  html`<${KeyValueDialog} title=${title} value=${key} onClose=${onClose} />`;
