/** Is all well? Who is near the limit? Who was refused, and why? */
import { html } from 'htm/preact';
import type {
  NearCustomerDocument,
  RefusedCustomerDocument,
  StatusDocument,
  UsageTotalsDocument,
} from '../../api/admin/responses.ts';
import { address } from '../client/api.ts';
import { Chart } from '../client/chart.ts';
import { badge, Empty, facts, loaded, Panel, timeAgo, usageBar } from '../client/components.ts';
import { compact, count, counted, duration, entryOf, refusalOf, tollgate, WINDOW_TEXTS } from '../client/format.ts';
import { HISTORY_POLL_MS, POLL_MS, useResource } from '../client/resources.ts';
import { at } from '../client/router.ts';
import { FirstRows, table } from '../client/table.ts';
import { CUSTOMER_COLUMN } from './customer-link.ts';
import { beginMaintenance, maintenanceBar } from './maintenance.ts';

/** What the totals have beside plans. */
const NO_PLAN = { none: 'without a valid key', unchecked: 'before the key was checked' };
const FIRST = { query: { limit: 20 } };

export function OverviewPage() {
  const status = useResource(address('GET /status', {}), POLL_MS);
  const near = useResource(address('GET /admin/v1/usage/near', FIRST), POLL_MS);
  const refused = useResource(address('GET /admin/v1/usage/refused', FIRST), POLL_MS);
  const totals = useResource(address('GET /admin/v1/usage/history', {}), HISTORY_POLL_MS);
  return html`
    ${status.data && maintenanceBar(status.data.maintenance)}
    ${loaded(status, health)}
    <div class="grid">
      <${Panel} title="Last 24 hours" command=${tollgate('usage', 'totals')} wide>${loaded(totals, totalsByPlan)}<//>
      <${Panel} title="Near the limit" command=${tollgate('usage', 'near')}>${loaded(near, (rows) => html`<${FirstRows} rows=${rows} show=${nearTable} />`)}<//>
      <${Panel} title="Refused in the last hour" command=${tollgate('usage', 'refused')}>${loaded(refused, (rows) => html`<${FirstRows} rows=${rows} show=${refusedTable} />`)}<//>
      ${status.data && html`<${Panel} title="This installation" command=${tollgate('status')} wide>${installation(status.data)}<//>`}
    </div>`;
}

function health({ problems }: StatusDocument) {
  return html`<section class=${`health ${problems.length === 0 ? 'good' : 'bad'}`} aria-label="Health">
    <p class="verdict">${problems.length === 0 ? 'All is well.' : `${counted(problems.length, 'problem')} to look at.`}</p>
    ${
      problems.length > 0 &&
      html`<ul>${problems.map(
        ({ what, advice, detail }) =>
          html`<li><strong>${what}</strong> ${advice}${detail && html`<pre tabindex="0">${detail}</pre>`}</li>`,
      )}</ul>`
    }
  </section>`;
}

function installation(status: StatusDocument) {
  const { store, check, upstreams, config, fleet, maintenance } = status;
  const backends = Map.groupBy(upstreams, ({ backend }) => backend);
  return html`${facts([
    ['Store', `${store.kind === 'redis' ? 'Redis' : 'embedded'}, ${store.up ? 'connected' : 'unreachable'}`],
    ...[...backends].map(([name, of]): [string, string] => [
      backends.size === 1 ? 'Backend' : `Backend ${name}`,
      `${of.filter(({ up }) => up).length} of ${of.length} in service`,
    ]),
    ...(check === null
      ? []
      : [['Checks', `${check.address}, ${check.has_token ? 'with' : 'without'} a token`] as const]),
    ['Configuration', html`<code>${config.hash.slice(0, 12)}</code>`],
    ['Instances', count(status.instances)],
    ['Version', status.version],
    ['Running for', duration(status.uptime_seconds)],
  ])}
    ${
      fleet !== null &&
      fleet.length > 1 &&
      html`<details><summary>Instances</summary>
      ${table({
        label: 'Instances',
        rows: fleet,
        columns: [
          ['Host', ({ host }) => host ?? 'unknown'],
          ['Process', ({ pid }) => pid, 'number'],
          ['Version', ({ version }) => version],
          [
            'Configuration',
            ({ config_hash: hash }) =>
              html`<code>${hash}</code>${hash !== null && hash !== config.hash && html` ${badge('bad', 'another')}`}`,
          ],
          ['Last announced', ({ announced_at }) => timeAgo(announced_at)],
        ],
      })}</details>`
    }
    ${maintenance.mode === 'off' && beginMaintenance(maintenance)}`;
}

function nearTable(rows: readonly NearCustomerDocument[]) {
  return table({
    label: 'Customers near their limits',
    rows,
    keyOf: ({ customer }) => customer,
    hasCsv: true,
    empty: html`No customer has used 80 % of a limit. <a href=${`${at('customers')}?sort=-Used`}>All by usage</a>`,
    columns: [
      CUSTOMER_COLUMN,
      ['Used', usageBar],
      ['Per', ({ window }) => WINDOW_TEXTS[window]],
      ['Next free in', ({ reset_seconds }) => duration(reset_seconds), 'number'],
    ],
  });
}

function refusedTable(rows: readonly RefusedCustomerDocument[]) {
  return table({
    label: 'Refused customers',
    rows,
    keyOf: ({ customer, code }) => `${customer} ${code}`,
    hasCsv: true,
    empty: 'No customer was refused.',
    columns: [
      CUSTOMER_COLUMN,
      [
        'Why',
        ({ code }) =>
          html`<span class="reason" title=${refusalOf(code).advice}>${refusalOf(code).title} <small><code>${code}</code></small></span>`,
      ],
      ['Times', (row) => count(row.count), 'number'],
      ['Last', ({ last_at }) => timeAgo(last_at)],
    ],
  });
}

function totalsByPlan(totals: UsageTotalsDocument) {
  const points = totals.points.map(({ start, plans }) => ({
    start,
    admitted: sum(Object.values(plans), 'requests'),
    refused: sum(Object.values(plans), 'refused'),
  }));
  const isOther = (name: string) => Number(Object.hasOwn(NO_PLAN, name));
  const names = [...new Set(totals.points.flatMap(({ plans }) => Object.keys(plans)))]
    .toSorted()
    .toSorted((a, b) => isOther(a) - isOther(b));
  const rows = names.map((plan) => {
    const ofPlan = totals.points.flatMap(({ plans }) => entryOf(plans, plan) ?? []);
    return {
      plan,
      requests: sum(ofPlan, 'requests'),
      refused: sum(ofPlan, 'refused'),
      errors: sum(ofPlan, 'upstream_errors'),
    };
  });
  if (rows.length === 0)
    return html`<${Empty}>No requests in the last 24 hours. Create a <a href=${at('customers')}>customer</a> with a key, and send the first one.<//>`;
  const plans = table({
    label: 'Requests by plan',
    rows,
    keyOf: ({ plan }) => plan,
    hasCsv: true,
    columns: [
      [
        'Plan',
        ({ plan }) =>
          entryOf(NO_PLAN, plan)
            ? html`<span class="quiet">${entryOf(NO_PLAN, plan)}</span>`
            : html`<a href=${`${at('customers')}?plan=${encodeURIComponent(plan)}`}>${plan}</a>`,
      ],
      ['Requests', ({ requests }) => count(requests), 'number'],
      ['Refused', ({ refused }) => count(refused), 'number'],
      ['Refused share', ({ requests, refused }) => share(refused, requests + refused), 'number'],
      ['Backend errors', ({ errors }) => (errors > 0 ? badge('bad', count(errors)) : '0'), 'number'],
    ],
  });
  const stats = facts(
    [
      ['Requests', compact(sum(rows, 'requests'))],
      ['Refused', compact(sum(rows, 'refused'))],
      ['Backend errors', compact(sum(rows, 'errors'))],
    ],
    'stats',
  );
  return html`${stats}<${Chart} label="Requests of the last 24 hours" points=${points} />${plans}`;
}

function share(part: number, whole: number): string {
  return whole === 0 ? '–' : `${((100 * part) / whole).toFixed(1)} %`;
}

function sum<Name extends string>(items: readonly Readonly<Record<Name, number>>[], name: Name): number {
  return items.reduce((total, item) => total + item[name], 0);
}
