/** What would another limit do? Previews a config file, and tries numbers on the usage of the last hour. */
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { ConfigDocument, CustomerUsageDocument, PreviewDocument } from '../../admin-api/responses.ts';
import { call } from './api.ts';
import { Badge, Command, CustomerLink, Empty, inputValue, Loaded, Loading, Panel, Problem } from './components.ts';
import { count, counted, limitText, tollgate } from './format.ts';
import { useList, useResource } from './resources.ts';
import { Progress, Table } from './table.ts';
import { useSubmit } from './use-submit.ts';

export function LimitsPage() {
  const config = useResource<ConfigDocument>('/admin/v1/config');
  return html`<div class="grid">
    <${Panel} title="Try a number" wide>
      <${Loaded} resource=${config}>${(data: ConfigDocument) => html`<${PlanTrials} config=${data} />`}<//>
      <${Command} line=${tollgate('usage', 'list')} />
    <//>
    <${Panel} title="Try a config file" wide><${FilePreview} /><//>
  </div>`;
}

function PlanTrials({ config }: { config: ConfigDocument }) {
  const usage = useList<CustomerUsageDocument>('/admin/v1/usage', { rowsAtOnce: Number.POSITIVE_INFINITY });
  return html`
    <p>How many customers would be refused now, by what they used in the last hour. Customers with a limit of their own are left out.</p>
    ${
      usage.isLoading &&
      html`<${Progress} what=${`Read the usage of ${counted(usage.rows.length, 'customer')}`} stop=${usage.stop} />`
    }
    ${!usage.isLoading && !usage.isComplete && !usage.failure && html`<p class="more"><${Badge} tone="warn">incomplete<//> <button type="button" onClick=${usage.more}>Read the rest</button></p>`}
    ${usage.failure && html`<${Problem} failure=${usage.failure} retry=${usage.more} />`}
    <div class="trials">${Object.entries(config.plans).map(
      ([plan, settings]) =>
        html`<${PlanTrial} key=${plan} plan=${plan} settings=${settings as PlanSettings} usage=${usage.rows} />`,
    )}</div>`;
}

interface PlanSettings {
  readonly requests_per_hour: number | 'custom';
  readonly shadow?: { readonly requests_per_hour: number } | null;
  readonly formerly?: readonly string[] | null;
}

const LISTED_CUSTOMERS = 10;

function PlanTrial({
  plan,
  settings,
  usage,
}: {
  plan: string;
  settings: PlanSettings;
  usage: readonly CustomerUsageDocument[];
}) {
  const { requests_per_hour: limit, shadow, formerly } = settings;
  const [tried, setTried] = useState<number>();
  if (limit === 'custom') {
    return html`<section class="trial" aria-label=${plan}><h3>${plan}</h3><p class="quiet">Each customer has its own limit.</p></section>`;
  }
  const names = [plan, ...(formerly ?? [])];
  const customers = usage
    .filter((row) => names.includes(row.plan) && row.limit_source === 'plan')
    .toSorted((a, b) => b.used - a.used);
  const refusedAt = (number: number) => customers.filter(({ used }) => used >= number);
  const number = tried ?? shadow?.requests_per_hour ?? limit;
  const refused = refusedAt(number);
  const max = Math.max(2 * limit, customers[0]?.used ?? 0);
  const onInput = (event: Event) => setTried(Math.max(1, Math.round(Number(inputValue(event)))));
  return html`<section class="trial" aria-label=${plan}>
    <h3>${plan} <small>${count(limit)} per hour, ${counted(customers.length, 'customer')}</small></h3>
    <div class="slider">
      <input type="range" min="1" max=${max} step=${Math.max(1, Math.round(max / 400))} value=${number} aria-label=${`Limit to try for ${plan}`} onInput=${onInput} />
      <input type="number" min="1" step="1" value=${number} aria-label=${`Exact limit to try for ${plan}`} onInput=${onInput} />
    </div>
    <p aria-live="polite">At <strong>${count(number)}</strong>: <strong>${counted(refused.length, 'customer')}</strong> refused${
      number === limit ? '' : `, ${count(refusedAt(limit).length)} at ${count(limit)}`
    }.</p>
    ${
      shadow &&
      html`<p><${Badge} tone="warn">shadow limit ${count(shadow.requests_per_hour)}<//> would refuse ${counted(refusedAt(shadow.requests_per_hour).length, 'customer')} now.</p>`
    }
    ${
      refused.length > 0 &&
      html`<${Table} label=${`Customers of ${plan} that would be refused`} rows=${refused.slice(0, LISTED_CUSTOMERS)}
      keyOf=${(row: CustomerUsageDocument) => row.customer} empty="" columns=${TRIAL_COLUMNS} />`
    }
    ${refused.length > LISTED_CUSTOMERS && html`<p class="quiet">and ${count(refused.length - LISTED_CUSTOMERS)} more</p>`}
  </section>`;
}

const TRIAL_COLUMNS = [
  { title: 'Customer', cell: ({ customer }: CustomerUsageDocument) => html`<${CustomerLink} id=${customer} />` },
  { title: 'Used', isNumber: true, cell: ({ used }: CustomerUsageDocument) => count(used) },
];

function FilePreview() {
  const [text, setText] = useState('');
  const [isOver, setIsOver] = useState(false);
  const [result, setResult] = useState<PreviewDocument>();
  const { isBusy, failure, onSubmit } = useSubmit(async () => {
    setResult(undefined);
    setResult(await call<PreviewDocument>('POST', '/admin/v1/config/preview', { yaml: text }));
  });
  const take = async (file: File | undefined) => file && setText(await file.text());
  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    setIsOver(false);
    void take(event.dataTransfer?.files[0]);
  };
  const onDragOver = (event: Event) => {
    event.preventDefault();
    setIsOver(true);
  };
  return html`<form onSubmit=${onSubmit} aria-busy=${isBusy}>
      <p>Shows what the file would change and whom it would refuse. Nothing is applied.</p>
      <textarea class=${isOver ? 'over' : ''} aria-label="Config file" rows="10" spellcheck=${false} required placeholder="Paste or drop a YAML file" value=${text}
        onInput=${(event: Event) => setText(inputValue(event))} onDrop=${onDrop} onDragOver=${onDragOver} onDragLeave=${() => setIsOver(false)}></textarea>
      <div class="buttons">
        <input type="file" accept=".yaml,.yml" aria-label="Choose a file" onChange=${(event: Event) => void take((event.currentTarget as HTMLInputElement).files?.[0])} />
        <button class="primary" disabled=${isBusy}>${isBusy ? 'Comparing…' : 'Preview'}</button>
      </div>
    </form>
    ${isBusy && html`<${Loading} what="Comparing the limits of all customers" />`}
    ${failure && html`<${Problem} failure=${failure} />`}
    ${result && html`<${PreviewResult} preview=${result} />`}
    <${Command} line=${tollgate('preview', 'FILE')} />`;
}

const RELOAD_RESULTS = {
  applied: ['good', 'valid', 'A reload would apply this file.'],
  unchanged: ['quiet', 'unchanged', 'The file equals the running configuration.'],
  restart_required: [
    'warn',
    'needs a restart',
    'A reload would refuse this file: it changes settings that need a restart.',
  ],
  plan_in_use: ['bad', 'plan in use', 'A reload would refuse this file: it drops plans that customers still have.'],
} as const;

function PreviewResult({ preview }: { preview: PreviewDocument }) {
  const { reload, changes, changes_total, customers, dropped_plans, closest, uncompared_secrets } = preview;
  const [tone, label, verdict] = RELOAD_RESULTS[reload];
  const numbers = [
    ['Refused now', customers.refused],
    ['Newly refused', customers.newly_refused],
    ['Near', customers.near],
    ['Limit lowered', customers.lowered],
    ['Limit raised', customers.raised],
    ['Without a limit', customers.lost],
  ] as const;
  return html`<div class="result" role="status">
    <p><${Badge} tone=${tone}>${label}<//> ${verdict}</p>
    <dl class="stats">${numbers.map(([name, value]) => html`<div><dt>${name}</dt><dd>${count(value)}</dd></div>`)}</dl>
    <p class="quiet">Of ${counted(customers.total, 'customer')}.</p>
    ${dropped_plans.map(({ plan, customers: number }) => html`<p><${Badge} tone="bad">${plan} is dropped<//> ${counted(number, 'customer')} still on it.</p>`)}
    <h3>Customers, worst first</h3>
    <${Table} label="Customers that the file affects most" rows=${closest} keyOf=${(row: Closest) => row.customer} empty="No customer would be refused or near its limit." columns=${CLOSEST_COLUMNS} />
    <h3>${counted(changes_total, 'change')}</h3>
    ${
      changes.length === 0
        ? html`<${Empty}>Nothing changes.<//>`
        : html`<ul class="changes">${changes.map(
            ({ text, takes_effect }) =>
              html`<li><code>${text}</code>${takes_effect === 'restart' && html` <${Badge} tone="warn">needs a restart<//>`}</li>`,
          )}</ul>`
    }
    ${uncompared_secrets.length > 0 && html`<p class="quiet">Not compared, because they are secret: ${uncompared_secrets.join(', ')}.</p>`}
  </div>`;
}

type Closest = PreviewDocument['closest'][number];

const CLOSEST_COLUMNS = [
  { title: 'Customer', cell: ({ customer }: Closest) => html`<${CustomerLink} id=${customer} />` },
  { title: 'Plan', cell: ({ plan }: Closest) => plan },
  { title: 'Limit now', isNumber: true, cell: ({ limit_before }: Closest) => limitText(limit_before) },
  { title: 'Limit then', isNumber: true, cell: ({ limit_after }: Closest) => limitText(limit_after) },
  { title: 'Used', isNumber: true, cell: ({ used }: Closest) => count(used) },
  {
    title: 'Then',
    cell: ({ state }: Closest) => html`<${Badge} tone=${state === 'refused' ? 'bad' : 'warn'}>${state}<//>`,
  },
];
