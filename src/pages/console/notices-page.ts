/** Notices that are not delivered: why, sending one again, and a test of the endpoints. */
import { html } from 'htm/preact';
import { useContext } from 'preact/hooks';
import type { NoticeDocument, NoticeTestDocument } from '../../api/admin/responses.ts';
import { address, call } from '../client/api.ts';
import { badge, CommandMenu, facts, loaded, queryFilter, time, timeAgo } from '../client/components.ts';
import { Dialog } from '../client/dialog.ts';
import { FormButton, type FormDescription, MayWrite } from '../client/form-dialog.ts';
import { count, shortened, tollgate } from '../client/format.ts';
import { type List, POLL_MS, useList, useResource } from '../client/resources.ts';
import type { Place } from '../client/router.ts';
import { listTable, table } from '../client/table.ts';
import { CUSTOMER_COLUMN } from './customer-link.ts';

const STATES = [
  ['', 'Pending and dead'],
  ['pending', 'Pending'],
  ['dead', 'Dead'],
] as const;

export function NoticesPage({ query }: Place) {
  const { state } = query;
  const status = useResource(address('GET /status', {}), POLL_MS);
  const list = useList(address('GET /admin/v1/notices', { query: { state } }), { isFiltered: Boolean(state) });
  return html`
    <div class="toolbar">
      ${queryFilter('state', 'State', STATES, query)}
      <span class="actions">
        <${FormButton} label="Send a test notice" form=${() => testNotice()} isPrimary />
        <${CommandMenu} line=${tollgate('notices', 'list', { state })} />
      </span>
    </div>
    ${loaded(status, ({ notices }) =>
      notices === null
        ? html`<p>The configuration has no <code>notices</code>, so none are sent. Add this section with an endpoint, then send a test notice.</p>`
        : facts(
            [
              ['Pending', count(notices.pending)],
              ['Dead', count(notices.dead)],
            ],
            'stats',
          ),
    )}
    <${Notices} list=${list} empty="All notices are delivered." />`;
}

export function Notices({ list, empty }: { list: List<NoticeDocument>; empty: string }) {
  const mayWrite = useContext(MayWrite);
  const again = (notice: NoticeDocument) =>
    html`<span class="row-actions"><${FormButton} label="Send again" form=${() => retryNotice(notice)} /></span>`;
  return listTable<NoticeDocument>({
    label: 'Notices',
    list,
    keyOf: ({ id }) => id,
    empty,
    columns: [
      ['Notice', ({ id }) => html`<code title=${id}>${shortened(id)}</code>`],
      ['Type', ({ type }) => type],
      CUSTOMER_COLUMN,
      ['Created', ({ created_at }) => time(created_at)],
      ['Deliveries', ({ deliveries }) => deliveries.map(delivery)],
      ...(mayWrite ? [['Actions', again] as const] : []),
    ],
  });
}

function delivery(pending: NoticeDocument['deliveries'][number]) {
  const { endpoint, state, attempts, next_attempt_at: next, last_error } = pending;
  return html`<div>${badge(state === 'dead' ? 'bad' : 'warn', state)} ${endpoint}${' '}
    <small class="quiet">${count(attempts)} failed${next && html`, next ${timeAgo(next)}`}${last_error && `: ${last_error}`}</small></div>`;
}

function retryNotice({ id, customer }: NoticeDocument): FormDescription {
  return {
    title: 'Send this notice again?',
    label: 'Send again',
    text: html`To every endpoint that does not have it. It is about <strong>${customer}</strong>.`,
    command: () => ['notices', 'retry', id],
    submit: () => call('POST /admin/v1/notices/:id/retry', { id }),
    said: 'It is sent again within seconds.',
  };
}

/** Without a customer, to the endpoints of the configuration. */
export function testNotice(customer?: string): FormDescription<NoticeTestDocument> {
  return {
    title: 'Send a test notice?',
    label: 'Send',
    text:
      customer === undefined
        ? 'To each endpoint of the configuration, once.'
        : `To the notify_url of ${customer}, once.`,
    command: () => ['notices', 'test', { customer }],
    submit: () => call('POST /admin/v1/notices/test', { query: { customer } }),
    show: ({ results }, onClose) => html`<${Dialog} title="Test notice" onClose=${onClose}>
      ${table({
        label: 'Results',
        rows: results,
        columns: [
          ['Endpoint', ({ endpoint }) => endpoint],
          ['Result', ({ result }) => (result === 'delivered' ? result : badge('bad', result))],
          ['Why', ({ reason }) => reason],
        ],
      })}
      <div class="buttons"><button type="button" class="primary" autofocus onClick=${onClose}>Close</button></div>
    <//>`,
  };
}
