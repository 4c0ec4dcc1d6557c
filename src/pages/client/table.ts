/** Tables, and lists that are read page by page. On narrow screens, each row becomes a block with labelled values. */
import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Empty, inputValue, Loading, Problem, Select } from './components.ts';
import { saveCsv } from './csv.ts';
import { clockTime, count } from './format.ts';
import type { List } from './resources.ts';

/** `number`: aligned to the right, with digits of one width. `sortBy`: of a column by which a list can be sorted; null is last. */
export type Column<T> = readonly [
  title: string,
  cell: (row: T) => ComponentChildren,
  kind?: 'number' | undefined,
  sortBy?: (row: T) => string | number | null,
];

interface TableProps<T> {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  /** Of rows with links or buttons, which keep the focus when rows move. */
  readonly keyOf?: (row: T) => string;
  /** What is shown without rows, such as the next step. */
  readonly empty?: ComponentChildren;
  /** Offers the rows as CSV. */
  readonly hasCsv?: boolean;
  /** The title of the column by which the rows are sorted, after "-" if the greatest is first. Empty: not sorted. */
  readonly sort?: string;
  /** Undefined: the rows cannot be sorted. */
  readonly onSort?: (sort: string) => void;
}

export function table<T extends object>({
  label,
  columns,
  rows,
  keyOf,
  empty,
  hasCsv,
  sort = '',
  onSort,
}: TableProps<T>) {
  if (rows.length === 0) return html`<${Empty}>${empty}<//>`;
  const header = ([title, , kind, sortBy]: Column<T>) => {
    if (!sortBy || !onSort) return html`<th role="columnheader" scope="col" class=${kind}>${title}</th>`;
    const direction = sort === title ? 'ascending' : sort === `-${title}` ? 'descending' : 'none';
    const next =
      direction === 'none' ? (kind === 'number' ? `-${title}` : title) : sort.startsWith('-') ? title : `-${title}`;
    return html`<th role="columnheader" scope="col" class=${kind} aria-sort=${direction}>
      <button type="button" class="sort" onClick=${() => onSort(next)}>${title}</button></th>`;
  };
  // Roles are explicit because the narrow layout changes `display`, which removes the implicit ones.
  return html`<table role="table" aria-label=${label}>
    <thead role="rowgroup"><tr role="row">${columns.map(header)}</tr></thead>
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
  </table>
  ${hasCsv && html`<div>${csvButton(label, rows)}</div>`}`;
}

const csvButton = (label: string, rows: readonly object[]) =>
  html`<button type="button" class="small" aria-label=${`${label} as CSV`} onClick=${() => saveCsv(label, rows)}>CSV</button>`;

const COLLATOR = new Intl.Collator('en', { numeric: true });

function sorted<T>(rows: readonly T[], columns: readonly Column<T>[], sort: string): readonly T[] {
  const [, , , sortBy] = columns.find(([title]) => title === sort.replace(/^-/, '')) ?? [];
  if (sortBy === undefined) return rows;
  const sign = sort.startsWith('-') ? -1 : 1;
  const compare = (a: string | number | null, b: string | number | null) => {
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    return sign * (typeof a === 'number' ? a - Number(b) : COLLATOR.compare(a, String(b)));
  };
  return rows.toSorted((a, b) => compare(sortBy(a), sortBy(b)));
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

interface ListTableProps<T> extends Omit<TableProps<T>, 'rows' | 'keyOf'> {
  readonly list: List<T>;
  readonly keyOf: (row: T) => string;
  /** Returns what the CSV has for the rows that are shown, if not these. */
  readonly csvOf?: (rows: readonly T[]) => readonly object[];
  /** What all rows together are, beside their number. */
  readonly total?: (rows: readonly T[]) => string;
}

export function listTable<T extends object>({ list, total, csvOf = (rows) => rows, ...props }: ListTableProps<T>) {
  const { isLoading, isComplete, failure, asOfMs, shown } = list;
  const { keyOf, columns, sort = '', onSort } = props;
  // A record may be on two pages.
  const all = sorted([...new Map(list.rows.map((row) => [keyOf(row), row])).values()], columns, sort);
  const rows = all.slice(0, shown);
  const isRest = rows.length < all.length;
  const progress =
    list.calls === 0 ? 'Loading' : `${list.isFiltered ? 'Searching' : 'Reading'} on, ${count(all.length)} found so far`;
  const numbers = isRest
    ? `${count(rows.length)} of ${count(all.length)} shown`
    : `${count(all.length)} ${isComplete ? 'in all' : 'shown'}`;
  const sortable = columns.flatMap(([title, , kind, sortBy]) =>
    sortBy ? [[kind ? `-${title}` : title, title] as const] : [],
  );
  return html`<div aria-busy=${isLoading}>
    ${onSort && all.length > 1 && html`<p class="sort-choice">Sort by <${Select} aria-label="Sort by" options=${[['', 'nothing'], ...sortable]} value=${sort} onChange=${(event: Event) => onSort(inputValue(event))} /></p>`}
    ${(rows.length > 0 || isComplete) && table({ ...props, rows })}
    ${failure && !failure.isOutage && html`<${Problem} failure=${failure} retry=${list.more} />`}
    ${
      isLoading
        ? html`<${Progress} what=${progress} stop=${list.calls > 0 && list.stop} />`
        : !failure &&
          html`<p class="more">
            <span class="quiet">${all.length > 0 && numbers}${isComplete && all.length > 0 && total?.(all)}${asOfMs !== undefined && html`${all.length > 0 && ', '}as of ${clockTime(asOfMs)} <button type="button" class="small" onClick=${list.reload}>Refresh</button>`}
            ${rows.length > 0 && csvButton(props.label, csvOf(rows))}</span>
            ${(isRest || !isComplete) && html`<span class="actions"><button type="button" onClick=${list.more}>Show more</button>${!isComplete && html`<button type="button" onClick=${list.all}>Count all</button>`}</span>`}
          </p>`
    }
  </div>`;
}
