/** Tables, and lists that are read page by page. On narrow screens, each row becomes a block with labelled values. */
import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { Empty, Loading, Problem } from './components.ts';
import { count } from './format.ts';
import type { List } from './resources.ts';

export interface Column<T> {
  readonly title: string;
  readonly cell: (row: T) => ComponentChildren;
  /** Aligned to the right, with digits of one width. */
  readonly isNumber?: boolean;
}

interface TableProps<T> {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
  /** What is shown without rows. */
  readonly empty: ComponentChildren;
}

export function Table<T>({ label, columns, rows, keyOf, empty }: TableProps<T>) {
  if (rows.length === 0) return html`<${Empty}>${empty}<//>`;
  // Roles are explicit because the narrow layout changes `display`, which removes the implicit ones.
  return html`<table role="table" aria-label=${label}>
    <thead role="rowgroup"><tr role="row">
      ${columns.map(({ title, isNumber }) => html`<th role="columnheader" scope="col" class=${isNumber ? 'number' : ''}>${title}</th>`)}
    </tr></thead>
    <tbody role="rowgroup">
      ${rows.map(
        (row) => html`<tr role="row" key=${keyOf(row)}>
          ${columns.map(
            ({ title, cell, isNumber }) =>
              html`<td role="cell" data-label=${title} class=${isNumber ? 'number' : ''}><span>${cell(row)}</span></td>`,
          )}
        </tr>`,
      )}
    </tbody>
  </table>`;
}

export function Progress({ what, stop }: { what: string; stop: List<unknown>['stop'] | false }) {
  return html`<div class="progress"><${Loading} what=${what} />
    ${stop && html`<button type="button" onClick=${stop}>Stop</button>`}</div>`;
}

export function ListTable<T>(props: Omit<TableProps<T>, 'rows'> & { list: List<T> }) {
  const { list, ...table } = props;
  const { isLoading, isComplete, failure } = list;
  // A record may be on two pages.
  const rows = [...new Map(list.rows.map((row) => [table.keyOf(row), row])).values()];
  const progress = list.isFiltered && list.calls > 0 ? `Searching on, ${count(rows.length)} found so far` : 'Loading';
  return html`<div aria-busy=${isLoading}>
    ${(rows.length > 0 || isComplete) && html`<${Table} ...${table} rows=${rows} />`}
    ${failure && html`<${Problem} failure=${failure} retry=${list.more} />`}
    ${
      isLoading
        ? html`<${Progress} what=${progress} stop=${list.calls > 0 && list.stop} />`
        : !failure &&
          html`<p class="more">
            ${rows.length > 0 && html`<span class="quiet">${count(rows.length)} ${isComplete ? 'in all' : 'shown'}</span>`}
            ${!isComplete && html`<button type="button" onClick=${list.more}>Show more</button>`}
          </p>`
    }
  </div>`;
}
