/** What would another limit do? Previews a config file, and tries numbers on the usage of the last hour. */
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { ConfigDocument, CustomerUsageDocument, PreviewDocument } from '../../api/admin/responses.ts';
import { address, call } from '../client/api.ts';
import { badge, Empty, facts, inputValue, Loading, loaded, Panel, Problem } from '../client/components.ts';
import { count, counted, limitText, tollgate, WINDOW_TEXTS } from '../client/format.ts';
import { useAction } from '../client/hooks.ts';
import { useList, useResource } from '../client/resources.ts';
import { Progress, table } from '../client/table.ts';
import { CUSTOMER_COLUMN } from './customer-link.ts';
import { yamlOf } from './yaml.ts';

export function LimitsPage() {
  const config = useResource(address('GET /admin/v1/config', {}));
  const file = useResource(address('GET /admin/v1/config/file', {}));
  return html`<div class="grid">
    <${Panel} title="Try a number" command=${tollgate('usage', 'list')} wide>
      ${loaded(config, (data) => html`<${PlanTrials} config=${data} />`)}
    <//>
    <${Panel} title="Try a config file" command=${tollgate('preview', 'FILE')} wide>${loaded(file, (data) => html`<${FilePreview} running=${yamlOf(data)} />`)}<//>
  </div>`;
}

function PlanTrials({ config }: { config: ConfigDocument }) {
  const usage = useList(address('GET /admin/v1/usage', {}), { isWhole: true });
  return html`
    <p>How many customers would be refused now, by what they used in the last hour. Customers with a limit of their own are left out.</p>
    ${
      usage.isLoading &&
      html`<${Progress} what=${`Read the usage of ${counted(usage.rows.length, 'customer')}`} stop=${usage.stop} />`
    }
    ${!usage.isLoading && !usage.isComplete && !usage.failure && html`<p class="more">${badge('warn', 'incomplete')} <button type="button" onClick=${usage.more}>Read the rest</button></p>`}
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

function PlanTrial(props: { plan: string; settings: PlanSettings; usage: readonly CustomerUsageDocument[] }) {
  const { plan, settings, usage } = props;
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
      html`<p>${badge('warn', `shadow limit ${count(shadow.requests_per_hour)}`)} would refuse ${counted(refusedAt(shadow.requests_per_hour).length, 'customer')} now.</p>`
    }
    ${
      refused.length > 0 &&
      table({
        label: `Customers of ${plan} that would be refused`,
        rows: refused.slice(0, LISTED_CUSTOMERS),
        keyOf: ({ customer }) => customer,
        columns: [CUSTOMER_COLUMN, ['Used', ({ used }) => count(used), 'number']],
      })
    }
    ${refused.length > LISTED_CUSTOMERS && html`<p class="quiet">and ${count(refused.length - LISTED_CUSTOMERS)} more</p>`}
  </section>`;
}

/** `running`: the file to begin with. */
function FilePreview({ running }: { running: string }) {
  const [text, setText] = useState(running);
  const [isOver, setIsOver] = useState(false);
  const [result, setResult] = useState<PreviewDocument>();
  const { isBusy, failure, run } = useAction(async () => {
    setResult(undefined);
    setResult(await call('POST /admin/v1/config/preview', { body: text }));
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
  return html`<form onSubmit=${run} aria-busy=${isBusy}>
      <p>Change the running file, or paste or drop another one. The preview shows what it would change and whom it would refuse. Nothing is applied. Leave <code>(secret)</code> as it is: the running secret is meant.</p>
      <textarea class=${isOver ? 'over' : ''} aria-label="Config file" rows="16" spellcheck=${false} required value=${text}
        onInput=${(event: Event) => setText(inputValue(event))} onDrop=${onDrop} onDragOver=${onDragOver} onDragLeave=${() => setIsOver(false)}></textarea>
      <div class="buttons">
        <input type="file" accept=".yaml,.yml" aria-label="Choose a file" onChange=${(event: Event) => void take((event.currentTarget as HTMLInputElement).files?.[0])} />
        ${text !== running && html`<button type="button" onClick=${() => setText(running)}>Running file</button>`}
        <button class="primary" disabled=${isBusy}>${isBusy ? 'Comparing…' : 'Preview'}</button>
      </div>
    </form>
    ${isBusy && html`<${Loading} what="Comparing the limits of all customers" />`}
    ${failure && html`<${Problem} failure=${failure} />`}
    ${result && previewResult(result)}`;
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

function previewResult(preview: PreviewDocument) {
  const { reload, changes, changes_total, customers, dropped_plans, closest, uncompared_secrets } = preview;
  const [tone, label, verdict] = RELOAD_RESULTS[reload];
  const refusedToday = customers.refused - customers.newly_refused;
  const stats = facts(
    [
      ['Would be refused', html`${count(customers.refused)} <small>of whom ${count(refusedToday)} today</small>`],
      ['Near', count(customers.near)],
      ['Limit lowered', count(customers.lowered)],
      ['Limit raised', count(customers.raised)],
      ['Without a limit', count(customers.lost)],
    ],
    'stats',
  );
  const changed = closest.filter(({ limit_before, limit_after }) => limit_before !== limit_after);
  const unchanged = closest.filter(({ limit_before, limit_after }) => limit_before === limit_after);
  return html`<div class="result" role="status">
    <p>${badge(tone, label)} ${verdict}</p>
    ${stats}
    <p class="quiet">Of ${counted(customers.total, 'customer')}.</p>
    ${dropped_plans.map(({ plan, customers: number }) => html`<p>${badge('bad', `${plan} is dropped`)} ${counted(number, 'customer')} still on it.</p>`)}
    <h3>Customers whose limit changes, worst first</h3>
    ${affected('Customers that the file affects most', changed, 'None of them would be refused or near its limit.')}
    ${
      unchanged.length > 0 &&
      html`<details><summary>${counted(unchanged.length, 'customer')} refused or near with the same limit as today</summary>
      ${affected('Customers whose limit stays', unchanged)}</details>`
    }
    <h3>${counted(changes_total, 'change')}</h3>
    ${
      changes.length === 0
        ? html`<${Empty}>Nothing changes.<//>`
        : html`<ul class="changes">${changes.map(
            ({ text, takes_effect }) =>
              html`<li><code>${text}</code>${takes_effect === 'restart' && html` ${badge('warn', 'needs a restart')}`}</li>`,
          )}</ul>`
    }
    ${uncompared_secrets.length > 0 && html`<p class="quiet">Not compared, because they are secret: ${uncompared_secrets.join(', ')}.</p>`}
  </div>`;
}

function affected(label: string, rows: PreviewDocument['closest'], empty?: string) {
  return table({
    label,
    rows,
    empty,
    columns: [
      CUSTOMER_COLUMN,
      ['Plan', ({ plan }) => plan],
      ['Per', ({ window }) => WINDOW_TEXTS[window]],
      ['Limit now', ({ limit_before }) => limitText(limit_before), 'number'],
      ['Limit then', ({ limit_after }) => limitText(limit_after), 'number'],
      ['Used', ({ used }) => count(used), 'number'],
      ['Then', ({ state }) => badge(state === 'refused' ? 'bad' : 'warn', state)],
    ],
  });
}
