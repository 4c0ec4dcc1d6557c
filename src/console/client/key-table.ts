/** The table of keys, with their states and actions. */
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { KeyDocument } from '../../admin-api/responses.ts';
import { badge, customerLink, time, timeAgo } from './components.ts';
import { type FormDescription, FormDialog } from './form-dialog.ts';
import { DAY_MS } from './format.ts';
import { changeKey, revokeKey, rotateKey } from './key-forms.ts';
import type { List } from './resources.ts';
import { useMayWrite } from './session.ts';
import { type Column, listTable } from './table.ts';

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
  const owner: Column<KeyDocument> = ['Customer', ({ customer, customer_name: name }) => customerLink(customer, name)];
  const actions: Column<KeyDocument> = ['Actions', (key) => ACTIONS[key.state].length > 0 && actionsOf(key)];
  const never = html`<span class="quiet">never</span>`;
  const keys = listTable({
    label: 'Keys',
    list,
    empty,
    columns: [
      ...(withCustomer ? [owner] : []),
      [
        'Key',
        (key) => html`<span class="key-name" title=${key.id}>${key.name ?? html`<span class="quiet">no name</span>`}
        <small><code>${key.prefix ? `${key.prefix}…` : key.id}</code></small></span>`,
      ],
      ['State', keyState],
      ['Last used', ({ last_used_at: at }) => (at ? timeAgo(at) : never)],
      ['Created', ({ created_at: at }) => (at ? time(at) : '–')],
      ['Expires', ({ expires_at: at }) => (at ? time(at) : never)],
      ...(mayWrite ? [actions] : []),
    ],
  });
  return html`${keys}${form && html`<${FormDialog} form=${form} onClose=${() => setForm(undefined)} />`}`;
}

const TONES = { live: 'good', rotated: 'warn', expired: 'bad', revoked: 'quiet' } as const;
const EXPIRES_SOON_MS = 7 * DAY_MS;

function keyState({ state, expires_at }: KeyDocument) {
  const expiresSoon = state === 'live' && expires_at !== null && Date.parse(expires_at) < Date.now() + EXPIRES_SOON_MS;
  return expiresSoon ? badge('warn', 'expires soon') : badge(TONES[state], state);
}
