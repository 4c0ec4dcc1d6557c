/** All keys: which expire, which are unused. */
import { html } from 'htm/preact';
import type { KeyDocument } from '../../admin-api/responses.ts';
import { pathWith } from '../../pages/client/api.ts';
import { Command, queryFilter, type SelectOption } from '../../pages/client/components.ts';
import { FormButton } from '../../pages/client/form-dialog.ts';
import { tollgate } from '../../pages/client/format.ts';
import { useList } from '../../pages/client/resources.ts';
import type { Place } from '../../pages/client/router.ts';
import { newKey } from './key-forms.ts';
import { KeyTable } from './key-table.ts';
import { useMayWrite } from './session.ts';

const DAYS = ['7', '30', '90', '365'];
const choices = (any: string, text: string): readonly SelectOption[] => [
  ['', any],
  ...DAYS.map((days) => [days, `${text} ${days} days`] as const),
];
const EXPIRIES = choices('Any expiry', 'Expires within');
const USES = choices('Any use', 'Unused for');

export function KeysPage({ query }: Place) {
  const mayWrite = useMayWrite();
  const { expiring, unused, sort = '' } = query;
  const isFiltered = Boolean(expiring || unused);
  const path = pathWith('/admin/v1/keys', { expiring_days: expiring, unused_days: unused });
  const list = useList<KeyDocument>(path, { isFiltered, isWhole: sort !== '' });
  const command = isFiltered
    ? tollgate('keys', expiring ? 'expiring' : 'unused', { days: expiring || unused })
    : tollgate('keys', 'list');
  return html`
    <div class="toolbar">
      ${queryFilter('expiring', 'Expiry', EXPIRIES, query)}
      ${queryFilter('unused', 'Use', USES, query)}
      ${mayWrite && html`<${FormButton} label="New key" form=${() => newKey()} isPrimary />`}
    </div>
    <${KeyTable} list=${list} sort=${sort} withCustomer empty=${isFiltered ? 'No key matches.' : 'There are no keys yet.'} />
    ${!(expiring && unused) && html`<${Command} line=${command} />`}`;
}
