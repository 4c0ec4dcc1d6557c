/** The table of keys, with their states and actions. */
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { KeyDocument } from '../../admin-api/responses.ts';
import { Badge, CustomerLink, Time } from './components.ts';
import { EditKeyDialog, RevokeKeyDialog, RotateKeyDialog } from './key-dialogs.ts';
import type { List } from './resources.ts';
import { useMayWrite } from './session.ts';
import { type Column, ListTable } from './table.ts';

const LABELS = { rotate: 'Rotate', change: 'Change', revoke: 'Revoke' } as const;
const DIALOGS = { rotate: RotateKeyDialog, change: EditKeyDialog, revoke: RevokeKeyDialog } as const;

interface KeyTableProps {
  readonly list: List<KeyDocument>;
  readonly withCustomer?: boolean;
  readonly empty: string;
  readonly isFiltered?: boolean;
}

export function KeyTable({ list, withCustomer = false, empty, isFiltered = false }: KeyTableProps) {
  const mayWrite = useMayWrite();
  const [open, setOpen] = useState<{ action: keyof typeof DIALOGS; record: KeyDocument }>();
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
    ...(mayWrite ? [{ title: 'Actions', cell: (key: KeyDocument) => actionsOf(key) }] : []),
  ];

  function actionsOf(record: KeyDocument) {
    if (!isLive(record)) return '';
    const actions =
      record.replaced_by === null ? (['rotate', 'change', 'revoke'] as const) : (['change', 'revoke'] as const);
    return html`<span class="row-actions">${actions.map(
      (action) =>
        html`<button type="button" aria-label=${`${LABELS[action]} ${record.name ?? record.id}`} onClick=${() => setOpen({ action, record })}>${LABELS[action]}</button>`,
    )}</span>`;
  }

  const OpenDialog = open && DIALOGS[open.action];
  return html`<${ListTable} label="Keys" columns=${columns} list=${list} isFiltered=${isFiltered} keyOf=${(key: KeyDocument) => key.id} empty=${empty} />
    ${OpenDialog && html`<${OpenDialog} record=${open.record} onClose=${() => setOpen(undefined)} />`}`;
}

const DAY_MS = 86_400_000;
const EXPIRES_SOON_MS = 7 * DAY_MS;

function isLive({ revoked_at, expires_at }: KeyDocument): boolean {
  return revoked_at === null && (expires_at === null || Date.parse(expires_at) > Date.now());
}

function KeyState({ record }: { record: KeyDocument }) {
  if (record.revoked_at !== null) return html`<${Badge} tone="quiet">revoked<//>`;
  if (!isLive(record)) return html`<${Badge} tone="bad">expired<//>`;
  if (record.replaced_by !== null) return html`<${Badge} tone="warn">replaced<//>`;
  const expiresSoon = record.expires_at !== null && Date.parse(record.expires_at) < Date.now() + EXPIRES_SOON_MS;
  return expiresSoon ? html`<${Badge} tone="warn">expires soon<//>` : html`<${Badge} tone="good">live<//>`;
}
