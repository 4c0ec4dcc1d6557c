/** Actions on API keys. */
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { GeneratedKeyDocument, KeyDocument } from '../../admin-api/responses.ts';
import { call } from './api.ts';
import { Field } from './components.ts';
import { ActionDialog, useForm } from './dialog.ts';
import { tollgate } from './format.ts';
import { KeyValueDialog } from './key-value-dialog.ts';

interface OfKey {
  readonly record: KeyDocument;
  readonly onClose: () => void;
}

const pathOf = (key: KeyDocument) => `/admin/v1/keys/${encodeURIComponent(key.id)}`;
const titleOf = (key: KeyDocument) => key.name ?? key.prefix ?? key.id;

export function NewKeyDialog({ customer = '', onClose }: { customer?: string; onClose: () => void }) {
  const { values, bind } = useForm({ customer, name: '', expires: '' });
  const [value, setValue] = useState<string>();
  const expiresAt = values.expires === '' ? undefined : utcOf(values.expires);
  if (value !== undefined)
    return html`<${KeyValueDialog} title=${`New key of ${values.customer}`} value=${value} onClose=${onClose} />`;

  const submit = async () => {
    const json = { ...(values.name && { name: values.name }), ...(expiresAt && { expires_at: expiresAt }) };
    const path = `/admin/v1/customers/${encodeURIComponent(values.customer)}/keys`;
    const { key }: GeneratedKeyDocument = await call('POST', path, { json });
    setValue(key);
    return undefined;
  };
  const command = tollgate(
    'keys',
    'create',
    values.customer || 'CUSTOMER',
    ...(values.name ? ['--name', values.name] : []),
    ...(expiresAt ? ['--expires-at', expiresAt] : []),
  );
  return html`<${ActionDialog} title="New key" label="Create and copy" command=${command} submit=${submit} onClose=${onClose}>
    ${!customer && html`<${Field} label="Customer id"><input required autofocus ...${bind('customer')} /><//>`}
    <${Field} label="Name" hint="For people. Optional."><input maxlength="200" ...${bind('name')} /><//>
    <${Field} label="Expires" hint="In your time zone. Empty: never."><input type="datetime-local" ...${bind('expires')} /><//>
  <//>`;
}

const GRACES = [
  ['0', 'none: the old key stops working now'],
  ['3600', '1 hour'],
  ['86400', '1 day'],
  ['604800', '7 days'],
  ['2592000', '30 days'],
];

export function RotateKeyDialog({ record, onClose }: OfKey) {
  const { values, bind } = useForm({ grace: '86400' });
  const [value, setValue] = useState<string>();
  if (value !== undefined)
    return html`<${KeyValueDialog} title=${`New key of ${record.customer}`} value=${value} onClose=${onClose} />`;
  const submit = async () => {
    const json = { grace_seconds: Number(values.grace) };
    const { key }: GeneratedKeyDocument = await call('POST', `${pathOf(record)}/rotate`, { json });
    setValue(key);
    return undefined;
  };
  return html`<${ActionDialog} title=${`Rotate ${titleOf(record)}`} label="Rotate and copy" submit=${submit} onClose=${onClose}
    command=${tollgate('keys', 'rotate', record.id, '--grace-seconds', values.grace)}>
    <p>A new key replaces this one. Both count against the one quota of ${record.customer}.</p>
    <${Field} label="The old key works for"><select ...${bind('grace')}>
      ${GRACES.map(([seconds, label]) => html`<option value=${seconds} selected=${seconds === values.grace}>${label}</option>`)}
    </select><//>
  <//>`;
}

export function RevokeKeyDialog({ record, onClose }: OfKey) {
  const submit = async () => {
    await call('DELETE', pathOf(record));
    return `Revoked ${titleOf(record)}.`;
  };
  return html`<${ActionDialog} title=${`Revoke ${titleOf(record)}?`} label="Revoke key" isDangerous submit=${submit} onClose=${onClose}
    command=${tollgate('keys', 'revoke', record.id)}>
    <p>Requests with this key of <strong>${record.customer}</strong> get 401 within a second. This cannot be undone.</p>
  <//>`;
}

export function EditKeyDialog({ record, onClose }: OfKey) {
  const initial = { name: record.name ?? '', expires: localOf(record.expires_at) };
  const { values, bind } = useForm(initial);
  const name = values.name === initial.name ? undefined : values.name || null;
  const expiresAt =
    values.expires === initial.expires ? undefined : values.expires === '' ? null : utcOf(values.expires);
  const submit = async () => {
    await call('PATCH', pathOf(record), { json: { name, expires_at: expiresAt } });
    return `Changed ${values.name || record.id}.`;
  };
  const command = tollgate(
    'keys',
    'update',
    record.id,
    ...(name ? ['--name', name] : name === null ? ['--no-name'] : []),
    ...(expiresAt ? ['--expires-at', expiresAt] : expiresAt === null ? ['--no-expires-at'] : []),
  );
  return html`<${ActionDialog} title=${`Change ${titleOf(record)}`} label="Save" command=${command} submit=${submit} onClose=${onClose}>
    <${Field} label="Name"><input maxlength="200" ...${bind('name')} /><//>
    <${Field} label="Expires" hint="In your time zone. Empty: never."><input type="datetime-local" ...${bind('expires')} /><//>
  <//>`;
}

function utcOf(local: string): string {
  return new Date(local).toISOString();
}

/** The value of an input of type datetime-local; empty without a time. */
function localOf(time: string | null): string {
  const ms = Date.parse(time ?? '');
  if (Number.isNaN(ms)) return '';
  return new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
