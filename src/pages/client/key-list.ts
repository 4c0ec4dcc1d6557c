/** The table of keys, with their states and actions. */
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { KeyDocument } from '../../admin-api/responses.ts';
import { badge, time, timeAgo } from './components.ts';
import { type FormDescription, FormDialog } from './form-dialog.ts';
import { DAY_MS } from './format.ts';
import type { List } from './resources.ts';
import { type Column, listTable } from './table.ts';

/** What a row shows. */
export type ListedKey = Pick<
  KeyDocument,
  'id' | 'name' | 'prefix' | 'state' | 'created_at' | 'expires_at' | 'last_used_at'
>;

interface KeyListProps<Key extends ListedKey> {
  readonly list: List<Key>;
  readonly owner?: Column<Key> | undefined;
  /** By the label of the button. Without it, keys have no actions. */
  readonly forms?: Readonly<Record<string, (key: Key) => FormDescription>> | undefined;
  readonly empty: string;
}

const LABELS: Readonly<Record<KeyDocument['state'], readonly string[]>> = {
  live: ['Rotate', 'Rename', 'Change', 'Revoke'],
  rotated: ['Rename', 'Change', 'Revoke'],
  expired: [],
  revoked: [],
};

export function KeyList<Key extends ListedKey>({ list, owner, forms = {}, empty }: KeyListProps<Key>) {
  // Here and not in the row, which may lose the button while the new key is shown.
  const [form, setForm] = useState<FormDescription>();
  const button = (key: Key, label: string, open: (key: Key) => FormDescription) =>
    html`<button type="button" aria-label=${`${label} ${key.name ?? key.id}`} onClick=${() => setForm(open(key))}>${label}</button>`;
  const actionsOf = (key: Key) => {
    const buttons = LABELS[key.state].flatMap((label) => {
      const open = forms[label];
      return open ? [button(key, label, open)] : [];
    });
    return buttons.length > 0 && html`<span class="row-actions">${buttons}</span>`;
  };
  const never = html`<span class="quiet">never</span>`;
  const keys = listTable<Key>({
    label: 'Keys',
    list,
    empty,
    columns: [
      ...(owner ? [owner] : []),
      [
        'Key',
        (key) => html`<span class="key-name" title=${key.id}>${key.name ?? html`<span class="quiet">no name</span>`}
        <small><code>${key.prefix ? `${key.prefix}…` : key.id}</code></small></span>`,
      ],
      ['State', keyState],
      ['Last used', ({ last_used_at: at }) => (at ? timeAgo(at) : never)],
      ['Created', ({ created_at: at }) => (at ? time(at) : '–')],
      ['Expires', ({ expires_at: at }) => (at ? time(at) : never)],
      ...(Object.keys(forms).length > 0 ? [['Actions', actionsOf] as const] : []),
    ],
  });
  return html`${keys}${form && html`<${FormDialog} form=${form} onClose=${() => setForm(undefined)} />`}`;
}

const TONES = { live: 'good', rotated: 'warn', expired: 'bad', revoked: 'quiet' } as const;
const EXPIRES_SOON_MS = 7 * DAY_MS;

function keyState({ state, expires_at }: ListedKey) {
  const expiresSoon = state === 'live' && expires_at !== null && Date.parse(expires_at) < Date.now() + EXPIRES_SOON_MS;
  return expiresSoon ? badge('warn', 'expires soon') : badge(TONES[state], state);
}
