/** Is all well? Who is near the limit? Who was refused, and why? */
import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import type {
  NearCustomerDocument,
  RefusedCustomerDocument,
  StatusDocument,
  UsageTotalsDocument,
} from '../../admin-api/responses.ts';
import { Chart } from './chart.ts';
import { Badge, Command, CustomerLink, Empty, Loaded, Panel, Time, Usage } from './components.ts';
import { entryOf } from './entry-of.ts';
import { compact, count, counted, duration, tollgate } from './format.ts';
import { refusalReason } from './refusal-reasons.ts';
import { HISTORY_POLL_MS, POLL_MS, useResource } from './resources.ts';
import { at } from './router.ts';
import { Table } from './table.ts';

export function OverviewPage() {
  const status = useResource<StatusDocument>('/status', POLL_MS);
  const near = useResource<NearCustomerDocument[]>('/admin/v1/usage/near?limit=20', POLL_MS);
  const refused = useResource<RefusedCustomerDocument[]>('/admin/v1/usage/refused?limit=20', POLL_MS);
  const totals = useResource<UsageTotalsDocument>('/admin/v1/usage/history', HISTORY_POLL_MS);
  return html`
    <${Loaded} resource=${status}>${(data: StatusDocument) => html`<${Health} status=${data} />`}<//>
    <div class="grid">
      <${Panel} title="Near the limit">
        <${Loaded} resource=${near}>${(rows: NearCustomerDocument[]) => html`<${NearTable} rows=${rows} />`}<//>
        <${Command} line=${tollgate('usage', 'near')} />
      <//>
      <${Panel} title="Refused in the last hour">
        <${Loaded} resource=${refused}>${(rows: RefusedCustomerDocument[]) => html`<${RefusedTable} rows=${rows} />`}<//>
        <${Command} line=${tollgate('usage', 'refused')} />
      <//>
      <${Panel} title="Last 24 hours" wide>
        <${Loaded} resource=${totals}>${(data: UsageTotalsDocument) => html`<${Totals} totals=${data} />`}<//>
        <${Command} line=${tollgate('usage', 'totals')} />
      <//>
    </div>`;
}

function Health({ status }: { status: StatusDocument }) {
  const { problems, store, upstreams, config } = status;
  const upstreamsUp = upstreams.filter(({ up }) => up).length;
  const facts: readonly (readonly [string, ComponentChildren])[] = [
    ['Store', `${store.kind === 'redis' ? 'Redis' : 'embedded'}, ${store.up ? 'connected' : 'unreachable'}`],
    ['Backend', `${upstreamsUp} of ${upstreams.length} in service`],
    ['Configuration', html`<code>${config.hash.slice(0, 12)}</code>`],
    ['Instances', count(status.instances)],
    ['Version', status.version],
    ['Running for', duration(status.uptime_seconds)],
  ];
  return html`<section class=${`health ${problems.length === 0 ? 'good' : 'bad'}`} aria-label="Health">
    <p class="verdict">${problems.length === 0 ? 'All is well.' : `${counted(problems.length, 'problem')} to look at.`}</p>
    ${
      problems.length > 0 &&
      html`<ul>${problems.map(
        ({ what, advice, detail }) =>
          html`<li><strong>${what}</strong> ${advice}${detail && html`<pre tabindex="0">${detail}</pre>`}</li>`,
      )}</ul>`
    }
    <dl class="facts">${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    ${
      (status.fleet?.length ?? 0) > 1 &&
      html`<details><summary>Instances</summary>
      <${Table} label="Instances" rows=${status.fleet} keyOf=${(row: Instance) => row.id} empty="" columns=${instanceColumns(config.hash)} />
      <${Command} line=${tollgate('status')} /></details>`
    }
  </section>`;
}

type Instance = NonNullable<StatusDocument['fleet']>[number];

const instanceColumns = (hash: string) => [
  { title: 'Host', cell: ({ host }: Instance) => host ?? 'unknown' },
  { title: 'Process', isNumber: true, cell: ({ pid }: Instance) => pid },
  { title: 'Version', cell: ({ version }: Instance) => version },
  {
    title: 'Configuration',
    cell: ({ config_hash }: Instance) =>
      html`<code>${config_hash}</code>${config_hash !== null && config_hash !== hash && html` <${Badge} tone="bad">another<//>`}`,
  },
  { title: 'Last announced', cell: ({ announced_at }: Instance) => html`<${Time} at=${announced_at} relative />` },
];

export function NearTable({ rows }: { rows: readonly NearCustomerDocument[] }) {
  return html`<${Table} label="Customers near their limits" rows=${rows} keyOf=${(row: NearCustomerDocument) => row.customer}
    empty="No customer has used 80 % of its hourly limit." columns=${NEAR_COLUMNS} />`;
}

const NEAR_COLUMNS = [
  { title: 'Customer', cell: ({ customer }: NearCustomerDocument) => html`<${CustomerLink} id=${customer} />` },
  { title: 'Plan', cell: ({ plan }: NearCustomerDocument) => plan },
  { title: 'Used', cell: ({ used, limit }: NearCustomerDocument) => html`<${Usage} used=${used} limit=${limit} />` },
  { title: 'More in', isNumber: true, cell: ({ reset_seconds }: NearCustomerDocument) => duration(reset_seconds) },
];

const REFUSED_COLUMNS = [
  { title: 'Customer', cell: ({ customer }: RefusedCustomerDocument) => html`<${CustomerLink} id=${customer} />` },
  {
    title: 'Why',
    cell: ({ code }: RefusedCustomerDocument) =>
      html`<span class="reason" title=${refusalReason(code).advice}>${refusalReason(code).title} <small><code>${code}</code></small></span>`,
  },
  { title: 'Times', isNumber: true, cell: (row: RefusedCustomerDocument) => count(row.count) },
  { title: 'Last', cell: ({ last_at }: RefusedCustomerDocument) => html`<${Time} at=${last_at} relative />` },
];

function RefusedTable({ rows }: { rows: readonly RefusedCustomerDocument[] }) {
  return html`<${Table} label="Refused customers" rows=${rows} keyOf=${(row: RefusedCustomerDocument) => `${row.customer} ${row.code}`}
      empty="No customer was refused." columns=${REFUSED_COLUMNS} />`;
}

function Totals({ totals }: { totals: UsageTotalsDocument }) {
  const points = totals.points.map(({ start, plans }) => ({
    start,
    admitted: sum(Object.values(plans), 'requests'),
    refused: sum(Object.values(plans), 'refused'),
  }));
  const names = [...new Set(totals.points.flatMap(({ plans }) => Object.keys(plans)))].toSorted();
  const rows = names.map((plan) => {
    const ofPlan = totals.points.flatMap(({ plans }) => entryOf(plans, plan) ?? []);
    return {
      plan,
      requests: sum(ofPlan, 'requests'),
      refused: sum(ofPlan, 'refused'),
      errors: sum(ofPlan, 'upstream_errors'),
    };
  });
  if (rows.length === 0) return html`<${Empty}>No requests in the last 24 hours.<//>`;
  return html`
    <dl class="stats">
      <div><dt>Requests</dt><dd>${compact(sum(rows, 'requests'))}</dd></div>
      <div><dt>Refused</dt><dd>${compact(sum(rows, 'refused'))}</dd></div>
      <div><dt>Backend errors</dt><dd>${compact(sum(rows, 'errors'))}</dd></div>
    </dl>
    <${Chart} label="Requests of the last 24 hours" points=${points} />
    <${Table} label="Requests by plan" rows=${rows} keyOf=${(row: PlanRow) => row.plan} empty="" columns=${PLAN_COLUMNS} />`;
}

interface PlanRow {
  readonly plan: string;
  readonly requests: number;
  readonly refused: number;
  readonly errors: number;
}

const PLAN_COLUMNS = [
  {
    title: 'Plan',
    cell: ({ plan }: PlanRow) =>
      plan === 'none'
        ? html`<span class="quiet">without a valid key</span>`
        : html`<a href=${`${at('customers')}?plan=${encodeURIComponent(plan)}`}>${plan}</a>`,
  },
  { title: 'Requests', isNumber: true, cell: ({ requests }: PlanRow) => count(requests) },
  { title: 'Refused', isNumber: true, cell: ({ refused }: PlanRow) => count(refused) },
  {
    title: 'Refused share',
    isNumber: true,
    cell: ({ requests, refused }: PlanRow) => share(refused, requests + refused),
  },
  {
    title: 'Backend errors',
    isNumber: true,
    cell: ({ errors }: PlanRow) => (errors > 0 ? html`<${Badge} tone="bad">${count(errors)}<//>` : '0'),
  },
];

function share(part: number, whole: number): string {
  return whole === 0 ? '–' : `${((100 * part) / whole).toFixed(1)} %`;
}

function sum<Name extends string>(items: readonly Readonly<Record<Name, number>>[], name: Name): number {
  return items.reduce((total, item) => total + item[name], 0);
}
