/** What runs, and what the last reload said. */
import { html } from 'htm/preact';
import type { ConfigDocument, ReloadDocument, StatusDocument } from '../../api/admin/responses.ts';
import { address, call } from '../client/api.ts';
import { badge, facts, loaded, Panel, time } from '../client/components.ts';
import { Dialog } from '../client/dialog.ts';
import { FormButton, type FormDescription } from '../client/form-dialog.ts';
import { counted, tollgate } from '../client/format.ts';
import { POLL_MS, useResource } from '../client/resources.ts';
import { yamlOf } from './yaml.ts';

export function ConfigurationPage() {
  const status = useResource(address('GET /status', {}), POLL_MS);
  const config = useResource(address('GET /admin/v1/config', {}));
  const reload = html`<${FormButton} label="Reload" form=${() => RELOAD} />`;
  return html`<div class="grid">
    <${Panel} title="Config file" actions=${reload} command=${tollgate('status')} wide>${loaded(status, lastReload)}<//>
    <${Panel} title="Running configuration" command=${tollgate('config', 'show')} wide>${loaded(config, sections)}<//>
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
    ${last && html`<p>Last reload ${time(last.at)}: ${last.error === null ? resultText(last.result) : badge('bad', resultText(last.result))}</p>`}
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

const resultText = (result: string) => result.replaceAll('_', ' ');

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
  submit: () => call('POST /admin/v1/config/reload', {}),
  show: reloadResult,
};

function reloadResult({ result, changes, changes_total, warnings }: ReloadDocument, onClose: () => void) {
  return html`<${Dialog} title=${result === 'applied' ? 'The file was applied' : 'The file has not changed'} onClose=${onClose}>
    ${changes_total > 0 && html`<p>${counted(changes_total, 'change')}</p><ul class="changes">${changes.map(({ text }) => html`<li><code>${text}</code></li>`)}</ul>`}
    ${warnings.map((warning) => html`<p>${badge('warn', 'warning')} ${warning}</p>`)}
    <div class="buttons"><button type="button" class="primary" autofocus onClick=${onClose}>Close</button></div>
  <//>`;
}
