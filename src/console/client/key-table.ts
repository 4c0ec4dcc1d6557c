/** The table of keys, with their states and actions. */
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { KeyDocument } from '../../admin-api/responses.ts';
import { Badge, CustomerLink, Time } from './components.ts';
import { type FormDescription, FormDialog } from './form-dialog.ts';
import { DAY_MS } from './format.ts';
import { changeKey, revokeKey, rotateKey } from './key-forms.ts';
import type { List } from './resources.ts';
import { useMayWrite } from './session.ts';
import { type Column, ListTable } from './table.ts';

const FORMS = { Rotate: rotateKey, Change: changeKey, Revoke: revokeKey };
const ACTIONS = {
  live: ['Rotate', 'Change', 'Revoke'],
  rotated: ['Change', 'Revoke'],
  expired: [],
  revoked: [],
} as const satisfies Record<KeyDocument['state'], readonly (keyof typeof FORMS)[]>;

interface KeyTableProps {
  readonly list: List<KeyDocument>;
  readonly withCustomer?: boolean;
  readonly empty: string;
}

export function KeyTable({ list, withCustomer = false, empty }: KeyTableProps) {
  const mayWrite = useMayWrite();
  // Here and not in the row, which may lose the button while the new key is shown.
  const [form, setForm] = useState<FormDescription>();
  const actionsOf = (key: KeyDocument) =>
    html`<span class="row-actions">${ACTIONS[key.state].map(
      (action) =>
        html`<button type="button" aria-label=${`${action} ${key.name ?? key.id}`} onClick=${() => setForm(FORMS[action](key))}>${action}</button>`,
    )}</span>`;
  const columns: Column<KeyDocument>[] = [
    ...(withCustomer
      ? [{ title: 'Customer', cell: (key: KeyDocument) => html`<${CustomerLink} id=${key.customer} />` }]
      : []),
    {
      title: 'Key',
      cell: (key) => html`<span class="key-name">${key.name ?? html`<span class="quiet">no name</span>`}
        <small><code>${key.prefix ? `${key.prefix}…` : key.id}</code></small></span>`,
    },
    { title: 'State', cell: (key) => html`<${KeyState} record=${key} />` },
    {
      title: 'Last used',
      cell: (key) =>
        key.last_used_at ? html`<${Time} at=${key.last_used_at} relative />` : html`<span class="quiet">never</span>`,
    },
    { title: 'Created', cell: (key) => (key.created_at ? html`<${Time} at=${key.created_at} />` : '–') },
    {
      title: 'Expires',
      cell: (key) => (key.expires_at ? html`<${Time} at=${key.expires_at} />` : html`<span class="quiet">never</span>`),
    },
    ...(mayWrite
      ? [{ title: 'Actions', cell: (key: KeyDocument) => ACTIONS[key.state].length > 0 && actionsOf(key) }]
      : []),
  ];
  return html`<${ListTable} label="Keys" columns=${columns} list=${list} keyOf=${(key: KeyDocument) => key.id} empty=${empty} />
    ${form && html`<${FormDialog} form=${form} onClose=${() => setForm(undefined)} />`}`;
}

const TONES = { live: 'good', rotated: 'warn', expired: 'bad', revoked: 'quiet' } as const;
const EXPIRES_SOON_MS = 7 * DAY_MS;

function KeyState({ record: { state, expires_at } }: { record: KeyDocument }) {
  const expiresSoon = state === 'live' && expires_at !== null && Date.parse(expires_at) < Date.now() + EXPIRES_SOON_MS;
  return expiresSoon ? html`<${Badge} tone="warn">expires soon<//>` : html`<${Badge} tone=${TONES[state]}>${state}<//>`;
}
