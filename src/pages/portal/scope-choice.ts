/** The scopes of a key, as boxes to check: customers need not know their names. */
import { html } from 'htm/preact';
import { inputValue } from '../client/components.ts';
import type { ControlProps } from '../client/form-dialog.ts';

export interface OfferedScope {
  readonly scope: string;
  /** None if the API no longer has the scope. */
  readonly routes: readonly { readonly methods: readonly string[]; path: string; description: string | null }[];
}

/** Returns the control of a field. `hint`: what to check. */
export function scopeChoice(offered: readonly OfferedScope[], hint: string) {
  return ({ text, enter, fault }: ControlProps) => {
    const checked = text.split(' ');
    const onChange = (event: Event) => {
      const changed = inputValue(event);
      const isChecked = ({ scope }: OfferedScope) => checked.includes(scope) !== (scope === changed);
      const scopes = offered.filter(isChecked).map(({ scope }) => scope);
      enter(scopes.join(' '));
    };
    return html`<fieldset class="field">
      <legend>Scopes</legend><small>${hint}</small>
      ${offered.map(
        ({ scope, routes }) => html`<label class="choice">
          <input type="checkbox" name="scopes" value=${scope} checked=${checked.includes(scope)} onChange=${onChange} />
          <span><code>${scope}</code> ${routes.map((route) => html`<small>${aboutRoute(route)}</small>`)}</span>
        </label>`,
      )}
      ${fault && html`<small class="fault" role="alert">${fault}</small>`}
    </fieldset>`;
  };
}

function aboutRoute({ methods, path, description }: OfferedScope['routes'][number]) {
  if (description !== null) return description;
  const named = methods.includes('GET') ? methods.filter((method) => method !== 'HEAD') : methods;
  return html`<code>${named.join(', ')} ${path}</code>`;
}
