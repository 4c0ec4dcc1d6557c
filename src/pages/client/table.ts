/** Tables, and lists that are read page by page. On narrow screens, each row becomes a block with labelled values. */
import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Empty, Loading, Problem } from './components.ts';
import { count } from './format.ts';
import type { List } from './resources.ts';

/** Numbers are aligned to the right, with digits of one width. */
export type Column<T> = readonly [title: string, cell: (row: T) => ComponentChildren, kind?: 'number'];

interface TableProps<T> {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  /** Of rows with links or buttons, which keep the focus when rows move. */
  readonly keyOf?: (row: T) => string;
  /** What is shown without rows. */
  readonly empty?: ComponentChildren;
}

export function table<T>({ label, columns, rows, keyOf, empty }: TableProps<T>) {
  if (rows.length === 0) return html`<${Empty}>${empty}<//>`;
  // Roles are explicit because the narrow layout changes `display`, which removes the implicit ones.
  return html`<table role="table" aria-label=${label}>
    <thead role="rowgroup"><tr role="row">
      ${columns.map(([title, , kind]) => html`<th role="columnheader" scope="col" class=${kind}>${title}</th>`)}
    </tr></thead>
    <tbody role="rowgroup">
      ${rows.map(
        (row) => html`<tr role="row" key=${keyOf?.(row)}>
          ${columns.map(
            ([title, cell, kind]) =>
              html`<td role="cell" data-label=${title} class=${kind}><span>${cell(row)}</span></td>`,
          )}
        </tr>`,
      )}
    </tbody>
  </table>`;
}

const FIRST_ROWS = 8;

/** Shows the first rows, and all of them after a click. */
export function FirstRows<T>({ rows, show }: { rows: readonly T[]; show: (rows: readonly T[]) => ComponentChildren }) {
  const [isAll, setIsAll] = useState(false);
  if (isAll || rows.length <= FIRST_ROWS) return show(rows);
  return html`${show(rows.slice(0, FIRST_ROWS))}
    <p class="more"><button type="button" onClick=${() => setIsAll(true)}>All ${rows.length}</button></p>`;
}

export function Progress({ what, stop }: { what: string; stop: List<unknown>['stop'] | false }) {
  return html`<div class="progress"><${Loading} what=${what} />
    ${stop && html`<button type="button" onClick=${stop}>Stop</button>`}</div>`;
}

export function listTable<T extends { readonly id: string }>(
  props: Omit<TableProps<T>, 'rows' | 'keyOf'> & { list: List<T> },
) {
  const { list, ...others } = props;
  const { isLoading, isComplete, failure } = list;
  // A record may be on two pages.
  const rows = [...new Map(list.rows.map((row) => [row.id, row])).values()];
  const progress = list.isFiltered && list.calls > 0 ? `Searching on, ${count(rows.length)} found so far` : 'Loading';
  return html`<div aria-busy=${isLoading}>
    ${(rows.length > 0 || isComplete) && table({ ...others, rows, keyOf: ({ id }) => id })}
    ${failure && !failure.isOutage && html`<${Problem} failure=${failure} retry=${list.more} />`}
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
