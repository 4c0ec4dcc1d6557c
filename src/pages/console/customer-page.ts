/** One customer: its limit and what sets it, its usage, why it is refused, and its keys. */
import { html } from 'htm/preact';
import { useContext, useEffect, useState } from 'preact/hooks';
import type { CustomerDocument, ExplanationDocument } from '../../api/admin/responses.ts';
import { address } from '../client/api.ts';
import {
  actionButtons,
  CopyButton,
  Empty,
  facts,
  loaded,
  Menu,
  Panel,
  time,
  timeAgo,
  usageBar,
  withTimes,
} from '../client/components.ts';
import { FormButton, type FormDescription, FormDialog, MayWrite } from '../client/form-dialog.ts';
import { count, duration, limitText, refusalOf, tollgate } from '../client/format.ts';
import { POLL_MS, useList, useResource } from '../client/resources.ts';
import { at, type Place } from '../client/router.ts';
import { table } from '../client/table.ts';
import { type RefusalCounts, UsageHistory } from '../client/usage-history.ts';
import { CustomerAudit } from './audit-page.ts';
import {
  changeCustomer,
  deleteCustomer,
  limitForATime,
  openPortal,
  resetUsage,
  suspendCustomer,
} from './customer-forms.ts';
import { limitSource, suspendedBadge } from './customer-link.ts';
import { KeyTable, newKey } from './keys-page.ts';
import { testNotice } from './notices-page.ts';
import { LastRequests } from './requests.ts';

export type CustomerName = Pick<CustomerDocument, 'id' | 'name'>;

interface CustomerPageProps {
  readonly id: string;
  readonly query: Place['query'];
  /** Called with what the heading of the page needs. */
  readonly onName: (customer: CustomerName) => void;
}

export function CustomerPage({ id, query, onName }: CustomerPageProps) {
  const customer = useResource(address('GET /admin/v1/customers/:id', { id }));
  useEffect(() => {
    if (customer.data) onName(customer.data);
  }, [customer.data]);
  if (customer.failure?.code === 'not_found') {
    return html`<${Empty}>There is no customer with this id. Ids are case-sensitive. <a href=${at('customers')}>All customers</a><//>`;
  }
  return loaded(customer, (record) => html`<${Details} record=${record} query=${query} />`);
}

function Details({ record, query }: { record: CustomerDocument; query: Place['query'] }) {
  const { id } = record;
  const explanation = useResource(address('GET /admin/v1/customers/:id/explain', { id }), POLL_MS);
  const config = useResource(address('GET /admin/v1/config', {}));
  const keys = useList(address('GET /admin/v1/customers/:id/keys', { id }), { isWhole: true });
  const used = explanation.data?.usage?.used;
  const hasPortal = Boolean(config.data?.portal);
  return html`
    <div class="toolbar subtitle">
      <code>${id}</code> <${CopyButton} text=${id} label="Copy id" />
      ${suspendedBadge(record)} ${record.suspended_until && html`until ${time(record.suspended_until)}`}
      ${record.notify_url && html`<span class="quiet">notices to ${record.notify_url}</span>`}
      <span class="actions">
        ${hasPortal && html`<${FormButton} label="Open as this customer" form=${() => openPortal(record)} />`}
        <${FormButton} label="Limit for a time" form=${() => limitForATime(record)} />
        ${record.suspended && html`<${FormButton} label="Reactivate" form=${() => suspendCustomer(record)} />`}
        <${FormButton} label="Change" form=${() => changeCustomer(record, config.data?.plans ?? {}, used)} disabled=${config.data === undefined} isPrimary />
        <${RareActions} record=${record} />
      </span>
    </div>
    <div class="grid">
      <${Panel} title="Limit and usage" command=${tollgate('explain', id)}>${loaded(explanation, limitAndUsage)}<//>
      <${Panel} title="Is it refused?">${loaded(explanation, whyRefused)}<//>
      <${LastRequests} customer=${id} query=${query} />
      <${UsageHistory} customer=${id} limit=${record.limit ?? undefined} refusals=${refusedInRange} />
      <${Panel} title="Keys" wide command=${tollgate('keys', 'list', id)}
        actions=${html`<${FormButton} label="New key" form=${() => newKey(id)} isPrimary />`}>
        <${KeyTable} list=${keys} sort=${query.sort || 'Created'} empty="No keys yet. Create the first with “New key”: without one, the customer cannot send requests." />
      <//>
      <${Panel} title="Changes" wide command=${tollgate('audit', { customer: id })}><${CustomerAudit} id=${id} /><//>
    </div>`;
}

/** What is rarely done, or cannot be undone. */
function RareActions({ record }: { record: CustomerDocument }) {
  const [formOf, setFormOf] = useState<{ of: (record: CustomerDocument) => FormDescription }>();
  if (!useContext(MayWrite)) return null;
  const actions = [
    ['Reset usage', resetUsage],
    ...(record.notify_url ? [['Test notice', ({ id }: CustomerDocument) => testNotice(id)] as const] : []),
    ...(record.suspended ? [] : [['Suspend', suspendCustomer] as const]),
    ['Delete', deleteCustomer, true],
  ] as const;
  const buttons = actions.map(([label, of, isDangerous]) => [label, () => setFormOf({ of }), isDangerous] as const);
  return html`<${Menu} label="More actions" text="⋯">${actionButtons(buttons)}<//>
    ${formOf && html`<${FormDialog} form=${formOf.of(record)} onClose=${() => setFormOf(undefined)} />`}`;
}

function limitAndUsage(explanation: ExplanationDocument) {
  const { plan, current_plan, limit, limit_until, limit_then, limit_problem, origin, usage } = explanation;
  const planText =
    current_plan === plan
      ? plan
      : current_plan === null
        ? `${plan} (not configured)`
        : `${current_plan} (formerly ${plan})`;
  return html`
    <p class="big">${limit === null ? 'No limit' : html`${count(limit)} <small>requests per hour</small>`}</p>
    ${limit_until && html`<p>until ${time(limit_until)}, then ${limitText(limit_then)}</p>`}
    ${limit_problem && html`<p>${limit_problem}</p>`}
    ${usage && usageBar(usage)}
    ${facts([
      ['Plan', planText],
      ['Set by', html`${limitSource(explanation)} <small class="quiet">${origin}</small>`],
      ...(usage
        ? ([
            ['Remaining', count(usage.remaining)],
            ['Next free in', usage.used === 0 ? '–' : duration(usage.reset_seconds)],
          ] as const)
        : []),
    ])}
    ${periodAndUsage(explanation)}
    ${!usage && limit !== null && html`<p>The usage is unknown while the store is unavailable.</p>`}`;
}

function periodAndUsage({ period, period_origin: origin, usage }: ExplanationDocument) {
  if (period === null) return null;
  const { limit, per, beyond } = period;
  const counted = usage?.period;
  return html`
    <p class="big">${count(limit)} <small>requests per ${per}${beyond === 'allow' ? ', more is overage' : ''}</small></p>
    ${counted && usageBar(counted)}
    ${facts([
      ['Set by', html`${limitSource(period)} <small class="quiet">${origin}</small>`],
      ...(counted
        ? ([
            counted.overage > 0
              ? (['Overage', count(counted.overage)] as const)
              : (['Remaining', count(counted.remaining)] as const),
            [`Next ${per} begins`, time(counted.ends_at)],
          ] as const)
        : []),
    ])}`;
}

function whyRefused({ admitted, verdict, refusals }: ExplanationDocument) {
  const refused = table({
    label: 'Refusals of the last hour',
    rows: refusals,
    empty: 'None of its requests was refused in the last hour.',
    hasCsv: true,
    columns: [
      [
        'Refused because',
        ({ code }) =>
          html`<span class="reason">${refusalOf(code).title} <code>${code}</code><small>${refusalOf(code).advice}</small></span>`,
      ],
      ['Times', (row) => count(row.count), 'number'],
      ['Last', ({ last_at }) => timeAgo(last_at)],
    ],
  });
  return html`<p class=${`verdict ${admitted ? 'good' : 'bad'}`}>${withTimes(verdict)}</p>${refused}`;
}

const refusedInRange = (counts: RefusalCounts) =>
  html`<p class="reasons">Refused: ${counts.map(
    ([code, number]) =>
      html`<span title=${refusalOf(code).advice}>${count(number)} × ${refusalOf(code).title} <code>${code}</code></span>`,
  )}</p>`;
