/** One customer: its limit and what sets it, its usage, why it is refused, and its keys. */
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type {
  ConfigDocument,
  CustomerDocument,
  ExplanationDocument,
  KeyDocument,
  UsageHistoryDocument,
} from '../../admin-api/responses.ts';
import { customerPath, pathWith } from './api.ts';
import { Chart } from './chart.ts';
import { Choices, customerState, Empty, facts, loaded, Panel, timeAgo, usageBar } from './components.ts';
import { changeCustomer, deleteCustomer, resetUsage, suspendCustomer } from './customer-forms.ts';
import { FormButton } from './form-dialog.ts';
import { count, duration, HOUR_MS, tollgate } from './format.ts';
import { newKey } from './key-forms.ts';
import { KeyTable } from './key-table.ts';
import { refusalReason } from './refusal-reasons.ts';
import { HISTORY_POLL_MS, POLL_MS, useList, useResource } from './resources.ts';
import { at } from './router.ts';
import { useMayWrite } from './session.ts';
import { table } from './table.ts';

export function CustomerPage({ id }: { id: string }) {
  const path = customerPath(id);
  const customer = useResource<CustomerDocument>(path);
  const heading = html`<p class="breadcrumb"><a href=${at('customers')}>Customers</a></p><h1 tabindex="-1">${id}</h1>`;
  if (customer.failure?.code === 'not_found') {
    return html`${heading}<${Empty}>There is no customer with this id. Ids are case-sensitive. <a href=${at('customers')}>All customers</a><//>`;
  }
  return html`${heading}${loaded(customer, (record) => html`<${Details} path=${path} record=${record} />`)}`;
}

function Details({ path, record }: { path: string; record: CustomerDocument }) {
  const { id } = record;
  const explanation = useResource<ExplanationDocument>(`${path}/explain`, POLL_MS);
  const config = useResource<ConfigDocument>('/admin/v1/config');
  const keys = useList<KeyDocument>(`${path}/keys`);
  const mayWrite = useMayWrite();
  const used = explanation.data?.usage?.used;
  return html`
    <div class="toolbar">
      <span>${record.name}</span>
      ${customerState(record)}
      ${
        mayWrite &&
        html`<span class="actions">
        <${FormButton} label="Change" form=${() => changeCustomer(record, config.data?.plans ?? {}, used)} disabled=${config.data === undefined} />
        <${FormButton} label="Reset usage" form=${() => resetUsage(record)} />
        <${FormButton} label=${record.suspended ? 'Reactivate' : 'Suspend'} form=${() => suspendCustomer(record)} />
        <${FormButton} label="Delete" form=${() => deleteCustomer(record)} />
      </span>`
      }
    </div>
    <div class="grid">
      <${Panel} title="Limit and usage" command=${tollgate('explain', id)}>${loaded(explanation, limitAndUsage)}<//>
      <${Panel} title="Is it refused?">${loaded(explanation, whyRefused)}<//>
      <${History} path=${path} id=${id} />
      <${Panel} title="Keys" wide command=${tollgate('keys', 'list', id)}
        actions=${mayWrite && html`<${FormButton} label="New key" form=${() => newKey(id)} isPrimary />`}>
        <${KeyTable} list=${keys} empty="No keys. Without one, the customer cannot send requests." />
      <//>
    </div>`;
}

function limitAndUsage({ plan, current_plan, limit, limit_problem, origin, usage }: ExplanationDocument) {
  const planText =
    current_plan === plan
      ? plan
      : current_plan === null
        ? `${plan} (not configured)`
        : `${current_plan} (formerly ${plan})`;
  return html`
    <p class="big">${limit === null ? 'No limit' : html`${count(limit)} <small>requests per hour</small>`}</p>
    ${limit_problem && html`<p>${limit_problem}</p>`}
    ${usage && usageBar(usage)}
    ${facts([
      ['Plan', planText],
      ['Set by', origin],
      ...(usage
        ? ([
            ['Remaining', count(usage.remaining)],
            ['Next free in', usage.used === 0 ? '–' : duration(usage.reset_seconds)],
          ] as const)
        : []),
    ])}
    ${!usage && limit !== null && html`<p>The usage is unknown while the store is unavailable.</p>`}`;
}

function whyRefused({ admitted, verdict, refusals }: ExplanationDocument) {
  const refused = table({
    label: 'Refusals of the last hour',
    rows: refusals,
    empty: 'None of its requests was refused in the last hour.',
    columns: [
      [
        'Refused because',
        ({ code }) =>
          html`<span class="reason">${refusalReason(code).title} <code>${code}</code><small>${refusalReason(code).advice}</small></span>`,
      ],
      ['Times', (row) => count(row.count), 'number'],
      ['Last', ({ last_at }) => timeAgo(last_at)],
    ],
  });
  return html`<p class=${`verdict ${admitted ? 'good' : 'bad'}`}>${verdict}</p>${refused}`;
}

/** Without a number of days, the gateway's default for the step. */
const RANGES = [
  ['24h', '24 hours', 'hour', undefined],
  ['7d', '7 days', 'hour', 7],
  ['35d', '35 days', 'day', undefined],
] as const;

function History({ path, id }: { path: string; id: string }) {
  const [range, setRange] = useState<string>('24h');
  const [, label, step, days] = RANGES.find(([name]) => name === range) ?? RANGES[0];
  // Of whole hours, so that the address changes once an hour.
  const from = days && new Date(Math.floor(Date.now() / HOUR_MS) * HOUR_MS - (days * 24 - 1) * HOUR_MS).toISOString();
  const address = pathWith(`${path}/usage/history`, { step, from });
  const history = useResource<UsageHistoryDocument>(address, HISTORY_POLL_MS);
  const choices = html`<${Choices} label="Time range" options=${RANGES} value=${range} onChange=${setRange} />`;
  const command = tollgate('usage', 'history', id, { step, from: days && `${days}d` });
  return html`<${Panel} title="History" wide actions=${choices} command=${command}>
    ${loaded(history, ({ points }) => {
      const bars = points.map(({ start, requests, refused }) => ({ start, admitted: requests, refused }));
      return html`<${Chart} label=${`Requests of the last ${label}`} points=${bars} />${refusedByCode(points)}`;
    })}
  <//>`;
}

/** Refusals of all gateways in the range, most frequent first. */
function refusedByCode(points: UsageHistoryDocument['points']) {
  const counts = new Map<string, number>();
  for (const { refused_by_code = {} } of points) {
    for (const [code, number] of Object.entries(refused_by_code)) counts.set(code, (counts.get(code) ?? 0) + number);
  }
  if (counts.size === 0) return null;
  const sorted = [...counts].toSorted(([, a], [, b]) => b - a);
  return html`<p class="reasons">Refused: ${sorted.map(
    ([code, number]) =>
      html`<span title=${refusalReason(code).advice}>${count(number)} × ${refusalReason(code).title} <code>${code}</code></span>`,
  )}</p>`;
}
