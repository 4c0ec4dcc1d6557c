/** Shows the value of a new key, this once. It is held by the dialog alone, and gone when that closes. */
import { html } from 'htm/preact';
import { useEffect, useState } from 'preact/hooks';
import { copy } from './clipboard.ts';
import { CopyButton } from './components.ts';
import { Dialog } from './dialog.ts';

export function KeyValueDialog({ title, value, onClose }: { title: string; value: string; onClose: () => void }) {
  const [isCopied, setIsCopied] = useState(false);
  useEffect(() => void copy(value).then(setIsCopied), [value]);
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <p role="status">${isCopied ? 'The key is in your clipboard.' : 'Copy the key now.'} It cannot be shown again.</p>
    <div class="command">
      <input class="secret" readonly autocomplete="off" aria-label="API key" value=${value} onFocus=${selectAll} />
      <${CopyButton} text=${value} />
    </div>
    <p class="quiet">The client sends it as <code>Authorization: Bearer …</code></p>
    <div class="buttons"><button type="button" class="primary" onClick=${onClose}>Done</button></div>
  <//>`;
}

function selectAll(event: Event): void {
  (event.currentTarget as HTMLInputElement).select();
}
