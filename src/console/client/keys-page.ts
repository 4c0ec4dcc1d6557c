/** All keys: whose a key is, which expire, which are unused. */
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { KeyDocument } from '../../admin-api/responses.ts';
import { pathWith } from './api.ts';
import { Choices, Command, inputValue, SearchForm, Select } from './components.ts';
import { FormButton } from './form-dialog.ts';
import { tollgate } from './format.ts';
import { newKey } from './key-forms.ts';
import { KeyTable } from './key-table.ts';
import { useList } from './resources.ts';
import { type Place, setQuery } from './router.ts';
import { useMayWrite } from './session.ts';

type View = 'expiring' | 'unused' | undefined;

const VIEWS = [
  [undefined, 'All'],
  ['expiring', 'Expiring'],
  ['unused', 'Unused'],
] as const;
const DAYS = ['7', '30', '90', '365'].map((days) => [days, `${days} days`] as const);
const DEFAULT_DAYS = '30';
/** Addresses are logged, so no more of a key may be in them. The admin API refuses more. */
const MAX_PREFIX_LENGTH = 12;

interface Wanted {
  readonly prefix?: string;
  readonly sha256?: string;
}

export function KeysPage({ query }: Place) {
  const mayWrite = useMayWrite();
  const [wanted, setWanted] = useState<Wanted>({});
  const view =
    wanted.prefix || wanted.sha256 ? undefined : VIEWS.map(([name]) => name).find((name) => name === query.view);
  const days = query.days ?? DEFAULT_DAYS;
  const filter = {
    ...wanted,
    expiring_days: view === 'expiring' ? days : undefined,
    unused_days: view === 'unused' ? days : undefined,
  };
  const isFiltered = Object.values(filter).some(Boolean);
  const list = useList<KeyDocument>(pathWith('/admin/v1/keys', filter), { isFiltered });
  const command = wanted.sha256
    ? `${tollgate('keys', 'find')} < FILE`
    : wanted.prefix
      ? tollgate('keys', 'find', { prefix: wanted.prefix })
      : view === undefined
        ? tollgate('keys', 'list')
        : tollgate('keys', view, { days });
  const show = (name: View) => {
    setWanted({});
    setQuery({ view: name });
  };
  return html`
    <div class="toolbar">
      <${WhoseKey} onSearch=${setWanted} />
      <${Choices} label="Show" options=${VIEWS} value=${view} onChange=${show} />
      ${
        view &&
        html`<label>${view === 'expiring' ? 'within' : 'for'} <${Select} options=${DAYS} value=${days} onChange=${(event: Event) => setQuery({ days: inputValue(event) })} /></label>`
      }
      ${mayWrite && html`<${FormButton} label="New key" form=${() => newKey()} isPrimary />`}
    </div>
    <${KeyTable} list=${list} withCustomer empty=${isFiltered ? 'No key matches.' : 'There are no keys yet.'} />
    <${Command} line=${command} />`;
}

/** Finds a key by its first characters. Of a whole key, only the SHA-256 leaves the browser. */
function WhoseKey({ onSearch }: { onSearch: (wanted: Wanted) => void }) {
  const [text, setText] = useState('');
  const search = async (key: string) => {
    if (key.length > MAX_PREFIX_LENGTH) setText('');
    onSearch(await searchFor(key));
  };
  return html`<${SearchForm} text=${text} onText=${setText} onSearch=${search} autocomplete="off" spellcheck=${false}
    aria-label="Whose key is this? A key, or its first characters" placeholder="Whose key is this?" />`;
}

async function searchFor(key: string): Promise<Wanted> {
  if (key === '') return {};
  // Digests are available on https and loopback addresses only.
  if (key.length <= MAX_PREFIX_LENGTH || !window.isSecureContext) return { prefix: key.slice(0, MAX_PREFIX_LENGTH) };
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(key));
  return { sha256: Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('') };
}
