/** Requests that were refused or failed: what became of those with an id, and the last ones of a customer. */
import { html } from 'htm/preact';
import type { FailedRequestDocument } from '../../api/admin/responses.ts';
import { address } from '../client/api.ts';
import { Empty, loaded, Panel, queryFilter, time } from '../client/components.ts';
import { count, REFUSAL_TITLES, refusalOf, tollgate } from '../client/format.ts';
import { useList, useResource } from '../client/resources.ts';
import type { Place } from '../client/router.ts';
import { type Column, listTable, table } from '../client/table.ts';
import { UUID } from '../client/whole-keys.ts';
import { customerLink, idLink } from './customer-link.ts';

const COLUMNS: readonly Column<FailedRequestDocument>[] = [
  ['When', ({ at }) => time(at)],
  ['Status', ({ status }) => status, 'number'],
  ['Why', cause],
  ['Request', ({ method, route }) => html`${method} <code>${route}</code>`],
  ['Key', ({ key_id }) => key_id && idLink(key_id)],
  ['Client', ({ client }) => client],
  [
    'Sent to',
    ({ backend, upstream }) => upstream && html`<span class="reason">${backend}<small>${upstream}</small></span>`,
  ],
  ['ms', ({ duration_ms: ms }) => ms !== null && count(Math.round(ms)), 'number'],
];

function cause({ code, status, failure }: FailedRequestDocument) {
  const { title, advice } = code
    ? refusalOf(code)
    : status === 499
      ? { title: 'The client left', advice: 'It closed the connection before there was a response.' }
      : { title: 'Response of the backend', advice: 'The log of the backend has the reason, by the request id.' };
  return html`<span class="reason">${title} ${code && html`<code>${code}</code>`}<small>${failure ? `${failure}. ` : ''}${advice}</small></span>`;
}

/** Those with an id that clients were given, or chose. */
export function FoundRequests({ id }: { id: string }) {
  const found = useResource(address('GET /admin/v1/requests/:requestId', { requestId: id }));
  const isNone = found.failure?.code === 'not_found';
  // Most texts are none.
  if (!UUID.test(id) && found.data === undefined) return null;
  return html`<${Panel} title="Requests" wide command=${tollgate('requests', 'show', id)}>
    ${
      isNone
        ? html`<${Empty}>No refused or failed request has this id. They are kept for a day; requests that succeeded are in the log alone.<//>`
        : loaded(found, ({ items }) =>
            table({
              label: 'Requests',
              rows: items,
              hasCsv: true,
              columns: [
                ...COLUMNS.slice(0, 1),
                ['Customer', ({ customer }) => customer && customerLink(customer)],
                ...COLUMNS.slice(1),
              ],
            }),
          )
    }
  <//>`;
}

const CODES = [['', 'Any reason'], ...REFUSAL_TITLES] as const;

/** The last ones of a customer. */
export function LastRequests({ customer, query }: { customer: string; query: Place['query'] }) {
  const { code } = query;
  const list = useList(address('GET /admin/v1/requests', { query: { customer, code } }), { isFiltered: Boolean(code) });
  return html`<${Panel} title="Last refused and failed requests" wide command=${tollgate('requests', 'list', { customer, code })}
    actions=${queryFilter('code', 'Reason', CODES, query)}>
    ${listTable({
      label: 'Last refused and failed requests',
      list,
      keyOf: ({ request_id: id, at }) => `${id} ${at}`,
      empty: 'None in the last 24 hours.',
      columns: [...COLUMNS, ['Id', ({ request_id: id }) => idLink(id)]],
    })}
  <//>`;
}
