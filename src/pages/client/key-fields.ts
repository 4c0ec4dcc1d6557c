/** What the forms for API keys share: fields, and the dialog with a new key. */
import { html } from 'htm/preact';
import { createContext } from 'preact';
import { useContext, useEffect, useState } from 'preact/hooks';
import type { KeyDocument } from '../../api/admin/responses.ts';
import { Command, CopyButton, copy } from './components.ts';
import { Dialog } from './dialog.ts';
import { quoted } from './format.ts';

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

export const restrictionFields = (key?: Pick<KeyDocument, 'scopes' | 'allowed_addresses'>) =>
  [
    {
      name: 'scopes',
      option: 'scope',
      label: 'Scopes',
      hint: 'Separated by spaces. Empty: all routes.',
      kind: 'list',
      current: key?.scopes,
    },
    {
      name: 'allowed_addresses',
      option: 'allowed_address',
      label: 'Allowed addresses',
      hint: 'Addresses or CIDR blocks, separated by spaces. Empty: all.',
      kind: 'list',
      current: key?.allowed_addresses,
    },
  ] as const;

export const limitField = (key?: Pick<KeyDocument, 'requests_per_hour'>) =>
  ({
    name: 'requests_per_hour',
    label: 'Limit',
    hint: 'Requests of this key within an hour, under the limit of its customer. Empty: no limit of its own.',
    kind: 'number',
    current: key?.requests_per_hour,
    input: { min: 1 },
  }) as const;

export const titleOf = (key: { name: string | null; prefix: string | null; id: string }) =>
  key.name ?? key.prefix ?? key.id;

/** The name of the header in which clients send a key. */
export const KeyHeader = createContext('Authorization');

export function KeyInHeader() {
  const name = useContext(KeyHeader);
  return html`<code>${name}: ${schemeOf(name)}…</code>`;
}

const schemeOf = (header: string) => (header.toLowerCase() === 'authorization' ? 'Bearer ' : '');

interface ShownKey {
  readonly title: string;
  readonly value: string;
  readonly onClose: () => void;
  /** What it may read. */
  readonly exampleUrl?: string | null;
}

/** The value of a new key, shown this once. It is held by the dialog alone, and gone when that closes. */
function KeyValue({ title, value, onClose, exampleUrl }: ShownKey) {
  const header = useContext(KeyHeader);
  const [isCopied, setIsCopied] = useState(false);
  useEffect(() => void copy(value).then(setIsCopied), [value]);
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <p role="status">${isCopied ? 'The key is in your clipboard.' : 'Copy the key now.'} It cannot be shown again.</p>
    <div class="command">
      <input class="secret" readonly autocomplete="off" aria-label="API key" value=${value}
        onFocus=${(event: Event) => (event.currentTarget as HTMLInputElement).select()} />
      <${CopyButton} text=${value} />
    </div>
    <p class="quiet">Send it as <${KeyInHeader} /></p>
    ${exampleUrl && html`<p>Try it:</p><${Command} line=${curlLine(header, value, exampleUrl)} label="A request with the key" />`}
    <div class="buttons"><button type="button" class="primary" onClick=${onClose}>Done</button></div>
  <//>`;
}

export const showKey = (title: string, value: string, onClose: () => void, exampleUrl?: string | null) =>
  html`<${KeyValue} title=${title} value=${value} onClose=${onClose} exampleUrl=${exampleUrl} />`;

function curlLine(header: string, key: string, url: string): string {
  return ['curl', '-i', '-H', quoted(`${header}: ${schemeOf(header)}${key}`), quoted(url)].join(' ');
}
