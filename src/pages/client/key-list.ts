/** The table of keys, with their states and actions. */
import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { useContext, useState } from 'preact/hooks';
import type { KeyDocument } from '../../api/admin/responses.ts';
import { badge, RowActions, time, timeAgo, usageBar } from './components.ts';
import { type FormDescription, FormDialog, MayWrite } from './form-dialog.ts';
import { DAY_MS, shortened } from './format.ts';
import type { List } from './resources.ts';
import { setQuery } from './router.ts';
import { type Column, listTable } from './table.ts';

/** What a row shows. */
export type ListedKey = Pick<
  KeyDocument,
  'id' | 'name' | 'prefix' | 'state' | 'created_at' | 'expires_at' | 'last_used_at'
> &
  Partial<Pick<KeyDocument, 'replaced_by' | 'scopes' | 'allowed_addresses' | 'requests_per_hour' | 'used'>>;

interface KeyListProps<Key extends ListedKey> {
  readonly list: List<Key>;
  readonly owner?: Column<Key> | undefined;
  /** By the label of the button. */
  readonly forms: Readonly<Record<string, (key: Key) => FormDescription>>;
  /** Returns a link to the key that replaced another one; without it, no link. */
  readonly successor?: (id: string, name: string) => ComponentChildren;
  /** Of a list that can be sorted: see {@link listTable}. */
  readonly sort?: string | undefined;
  readonly empty: string;
}

export function KeyList<Key extends ListedKey>(props: KeyListProps<Key>) {
  const { list, owner, forms, successor, sort, empty } = props;
  const mayWrite = useContext(MayWrite);
  // Here and not in the row, which may lose the button while the new key is shown.
  const [form, setForm] = useState<FormDescription>();
  const actionsOf = (key: Key) => {
    const isOffered = (label: string) => key.state === 'live' || (key.state === 'rotated' && label !== 'Rotate');
    const actions = Object.entries(forms).flatMap(([label, formOf]) =>
      isOffered(label) ? [[label, () => setForm(formOf(key)), label === 'Revoke'] as const] : [],
    );
    return actions.length > 0 && html`<${RowActions} label=${key.name ?? key.id} actions=${actions} />`;
  };
  const never = html`<span class="quiet">never</span>`;
  const prefixes = new Map(list.rows.map(({ id, prefix }) => [id, prefix]));
  /** A replaced key names its successor, also when it has expired as planned. */
  const state = (key: Key) => {
    const id = key.replaced_by;
    if (!id || key.state === 'revoked') return keyState(key);
    const prefix = prefixes.get(id);
    const name = prefix ? `${prefix}…` : shortened(id);
    // Pages with a link have no room for the end, which is in its column.
    const isBrief = successor !== undefined || key.state !== 'rotated';
    return html`${isBrief ? html`<span class="quiet">rotated</span>` : keyState(key)}${' '}
      <span class="rotated quiet">→ ${successor?.(id, name) ?? html`<code>${name}</code>`}</span>`;
  };
  const keys = listTable<Key>({
    label: 'Keys',
    list,
    keyOf: ({ id }) => id,
    empty,
    ...(sort !== undefined && { sort, onSort: (column: string) => setQuery({ sort: column }) }),
    columns: [
      ...(owner ? [owner] : []),
      [
        'Key',
        (key) => html`<span class="key-name" title=${key.id}>${key.name ?? html`<span class="quiet">no name</span>`}
        <small><code>${key.prefix ? `${key.prefix}…` : shortened(key.id)}</code></small></span><small class="quiet">${restrictions(key)}</small>${limitOf(key)}`,
        undefined,
        ({ name, prefix }) => name ?? prefix,
      ],
      ['State', state],
      [
        'Last used',
        ({ last_used_at: at }) => (at ? timeAgo(at) : never),
        undefined,
        ({ last_used_at: at }) => timeOf(at) ?? 0,
      ],
      ['Created', ({ created_at: at }) => (at ? time(at) : '–'), undefined, ({ created_at: at }) => timeOf(at) ?? 0],
      ['Expires', ({ expires_at: at }) => (at ? time(at) : never), undefined, ({ expires_at: at }) => timeOf(at)],
      ...(mayWrite ? [['Actions', actionsOf] as const] : []),
    ],
  });
  return html`${keys}${form && html`<${FormDialog} form=${form} onClose=${() => setForm(undefined)} />`}`;
}

/** An empty list means that the record is unreadable. */
function restrictions({ scopes, allowed_addresses: addresses }: ListedKey): string {
  const list = (items: readonly string[] | null | undefined, word: string) =>
    items ? `${word} ${items.join(' ') || 'unreadable'}` : '';
  return [list(scopes, 'for'), list(addresses, 'from')].join(' ').trim();
}

/** A limit of 0 means that the record is unreadable. */
function limitOf({ state, requests_per_hour: limit, used }: ListedKey) {
  if (limit == null || state === 'revoked' || state === 'expired') return null;
  if (limit === 0) return badge('bad', 'limit unreadable');
  return used == null ? html`<small class="quiet">limit ${limit}</small>` : usageBar({ used, limit });
}

/** Of another program's text that is no time, null. */
const timeOf = (at: string | null) => Date.parse(at ?? '') || null;

const TONES = { rotated: 'warn', expired: 'bad', revoked: 'quiet' } as const;
const EXPIRES_SOON_MS = 7 * DAY_MS;

function keyState({ state, expires_at: at }: ListedKey) {
  if (state === 'rotated' && at !== null)
    return html`${badge('warn', 'rotated')} <small>works until ${time(at)}</small>`;
  if (state !== 'live') return badge(TONES[state], state);
  const expiresSoon = at !== null && Date.parse(at) < Date.now() + EXPIRES_SOON_MS;
  return expiresSoon ? badge('warn', 'expires soon') : state;
}
