/** What runs, what the last reload said, and who changed what. */
import { html } from 'htm/preact';
import { useMemo } from 'preact/hooks';
import type {
  AuditAction,
  AuditDocument,
  ConfigDocument,
  ReloadDocument,
  StatusDocument,
} from '../../admin-api/responses.ts';
import { call, pathWith } from './api.ts';
import { badge, Command, customerLink, facts, inputValue, loaded, Panel, Select, time } from './components.ts';
import { Dialog } from './dialog.ts';
import { entryOf } from './entry-of.ts';
import { FormButton, type FormDescription } from './form-dialog.ts';
import { counted, DAY_MS, shortened, tollgate } from './format.ts';
import { POLL_MS, useList, useResource } from './resources.ts';
import { type Place, searchAddress, setQuery } from './router.ts';
import { useMayWrite } from './session.ts';
import { listTable } from './table.ts';
import { yamlOf } from './yaml.ts';

export function ConfigurationPage({ query }: Place) {
  const status = useResource<StatusDocument>('/status', POLL_MS);
  const config = useResource<ConfigDocument>('/admin/v1/config');
  const mayWrite = useMayWrite();
  const reload = mayWrite && html`<${FormButton} label="Reload" form=${() => RELOAD} />`;
  return html`<div class="grid">
    <${Panel} title="Config file" actions=${reload} command=${tollgate('status')} wide>${loaded(status, lastReload)}<//>
    <${Panel} title="Running configuration" command=${tollgate('config', 'show')} wide>${loaded(config, sections)}<//>
    <${Panel} title="Audit" wide><${Audit} query=${query} /><//>
  </div>`;
}

function lastReload({ config }: StatusDocument) {
  const { file, hash, loaded_at, last_reload: last } = config;
  return html`
    ${facts([
      ['File', html`<code>${file}</code>`],
      ['Hash', html`<code>${hash.slice(0, 12)}</code>`],
      ['Matches the file since', time(loaded_at)],
    ])}
    ${last === null && html`<p class="quiet">The file has not changed since the start.</p>`}
    ${last && html`<p>Last reload ${time(last.at)}: ${badge(last.error === null ? 'good' : 'bad', last.result.replaceAll('_', ' '))}</p>`}
    ${
      last?.error &&
      html`<div class="problem" role="alert"><strong>The file was refused. The former configuration is still running.</strong>
      <ul class="faults">${last.error.split('\n').map((line) => html`<li>${faultOf(line)}</li>`)}</ul>
      <p>Correct the file. It is read again when it changes.</p></div>`
    }
    ${
      last &&
      last.changes.length > 0 &&
      html`<details><summary>${counted(last.changes.length, 'change')}</summary>
      <ul class="changes">${last.changes.map((text) => html`<li><code>${text}</code></li>`)}</ul></details>`
    }`;
}

/** A line as `file:line: path: message`, with the place set apart. */
function faultOf(line: string) {
  const [, place, message] = /^(\S+:\d+): (.*)$/.exec(line) ?? [];
  return place === undefined ? html`${line}` : html`<code>${place}</code> ${message}`;
}

function sections(config: ConfigDocument) {
  return html`<p class="quiet">With defaults, without secrets.</p>
    <div class="sections">${Object.entries(config).map(
      ([name, value]) =>
        html`<details key=${name} open=${name === 'plans'}><summary><code>${name}</code></summary><pre tabindex="0">${yamlOf({ [name]: value })}</pre></details>`,
    )}</div>`;
}

const RELOAD: FormDescription<ReloadDocument> = {
  title: 'Reload the config file?',
  label: 'Reload',
  text: 'The gateway reads its file and checks it. It applies all of it, or nothing. Changed files are noticed without this.',
  command: () => ['reload'],
  submit: () => call('POST', '/admin/v1/config/reload'),
  show: reloadResult,
};

function reloadResult({ result, changes, changes_total, warnings }: ReloadDocument, onClose: () => void) {
  return html`<${Dialog} title=${result === 'applied' ? 'The file was applied' : 'The file has not changed'} onClose=${onClose}>
    ${changes_total > 0 && html`<p>${counted(changes_total, 'change')}</p><ul class="changes">${changes.map(({ text }) => html`<li><code>${text}</code></li>`)}</ul>`}
    ${warnings.map((warning) => html`<p>${badge('warn', 'warning')} ${warning}</p>`)}
    <div class="buttons"><button type="button" class="primary" autofocus onClick=${onClose}>Close</button></div>
  <//>`;
}

const ACTIONS: Readonly<Record<AuditAction, string>> = {
  'customer.create': 'Customer created',
  'customer.update': 'Customer changed',
  'customer.delete': 'Customer deleted',
  'customer.notify_secret': 'Secret for notices created',
  'usage.reset': 'Usage reset',
  'key.create': 'Key created',
  'key.import': 'Key imported',
  'key.update': 'Key changed',
  'key.revoke': 'Key revoked',
  'key.rotate': 'Key rotated',
  'config.reload': 'Config file reloaded',
  'config.preview': 'Config file previewed',
  'session.create': 'Console login',
  'portal_session.create': 'Link to the portal created',
  'portal_session.open': 'Portal session opened',
  'portal_session.end': 'Portal sessions ended',
  'portal_token.create': 'Token for the portal created',
  'notice.retry': 'Notice sent again',
  'notice.test': 'Test notice sent',
  'endpoint.disable': 'Endpoint of notices disabled',
  'access.refused': 'Access refused',
};
const PERIODS = [
  ['', 'Any time'],
  ['1', 'Last 24 hours'],
  ['7', 'Last 7 days'],
  ['35', 'Last 35 days'],
];

function Audit({ query }: Pick<Place, 'query'>) {
  const { customer, action, days } = query;
  // Only when the choice changes: another address would read the list again.
  const from = useMemo(() => days && new Date(Date.now() - Number(days) * DAY_MS).toISOString(), [days]);
  const isFiltered = Boolean(customer || action);
  const list = useList<AuditDocument>(pathWith('/admin/v1/audit', { customer, action, from }), { isFiltered });
  const change = (name: string) => (event: Event) => setQuery({ [name]: inputValue(event) });
  const command = tollgate('audit', { customer, action, from: days && `${days}d` });
  return html`
    <div class="toolbar">
      <input type="search" aria-label="Customer id" placeholder="Customer id" value=${customer ?? ''} onChange=${change('customer')} />
      <${Select} aria-label="Action" options=${[['', 'All actions'], ...Object.entries(ACTIONS)]} value=${action} onChange=${change('action')} />
      <${Select} aria-label="Period" options=${PERIODS} value=${days} onChange=${change('days')} />
    </div>
    ${listTable({
      label: 'Audit',
      list,
      empty: 'No entries.',
      columns: [
        ['When', ({ at }) => time(at)],
        ['Who', ({ actor, from }) => html`<span>${actor} <small class="quiet">${from}</small></span>`],
        ['What', ({ action }) => html`<span title=${action}>${entryOf(ACTIONS, action) ?? action}</span>`],
        ['Customer', ({ customer, customer_name: name }) => customer && customerLink(customer, name)],
        [
          'Key',
          ({ key_id }) =>
            key_id &&
            html`<a href=${searchAddress(key_id)} title=${key_id}><code class="id">${shortened(key_id)}</code></a>`,
        ],
        ['Details', ({ details }) => html`<small>${detailsText(details ?? {})}</small>`],
      ],
    })}
    <${Command} line=${command} />`;
}

function detailsText(details: NonNullable<AuditDocument['details']>): string {
  return Object.entries(details)
    .map(([name, value]) => `${name}: ${value}`)
    .join(', ');
}
