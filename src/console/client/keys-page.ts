/** All keys: which expire, which are unused. */
import { html } from 'htm/preact';
import type { KeyDocument } from '../../admin-api/responses.ts';
import { pathWith } from '../../pages/client/api.ts';
import { Choices, Command, inputValue, Select } from '../../pages/client/components.ts';
import { FormButton } from '../../pages/client/form-dialog.ts';
import { tollgate } from '../../pages/client/format.ts';
import { useList } from '../../pages/client/resources.ts';
import { type Place, setQuery } from '../../pages/client/router.ts';
import { newKey } from './key-forms.ts';
import { KeyTable } from './key-table.ts';
import { useMayWrite } from './session.ts';

type View = 'expiring' | 'unused' | undefined;

const VIEWS = [
  [undefined, 'All'],
  ['expiring', 'Expiring'],
  ['unused', 'Unused'],
] as const;
const DAYS = ['7', '30', '90', '365'].map((days) => [days, `${days} days`] as const);
const DEFAULT_DAYS = '30';

export function KeysPage({ query }: Place) {
  const mayWrite = useMayWrite();
  const view = VIEWS.map(([name]) => name).find((name) => name === query.view);
  const days = query.days ?? DEFAULT_DAYS;
  const path = pathWith('/admin/v1/keys', view ? { [`${view}_days`]: days } : {});
  const list = useList<KeyDocument>(path, { isFiltered: view !== undefined });
  return html`
    <div class="toolbar">
      <${Choices} label="Show" options=${VIEWS} value=${view} onChange=${(name: View) => setQuery({ view: name })} />
      ${
        view &&
        html`<label>${view === 'expiring' ? 'within' : 'for'} <${Select} options=${DAYS} value=${days} onChange=${(event: Event) => setQuery({ days: inputValue(event) })} /></label>`
      }
      ${mayWrite && html`<${FormButton} label="New key" form=${() => newKey()} isPrimary />`}
    </div>
    <${KeyTable} list=${list} withCustomer empty=${view ? 'No key matches.' : 'There are no keys yet.'} />
    <${Command} line=${view ? tollgate('keys', view, { days }) : tollgate('keys', 'list')} />`;
}
