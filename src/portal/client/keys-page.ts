/** The customer's keys: which is used, which expires, and what can be done with them. */
import { html } from 'htm/preact';
import { Empty } from '../../pages/client/components.ts';
import { FormButton } from '../../pages/client/form-dialog.ts';
import { KeyList } from '../../pages/client/key-list.ts';
import { useList } from '../../pages/client/resources.ts';
import type { PortalKeyDocument } from '../../portal-api/portal-documents.ts';
import { newKey, renameKey, restrictKey, revokeKey, rotateKey } from './key-forms.ts';
import { useMay } from './portal-context.ts';

const FORMS = { Rotate: rotateKey, Rename: renameKey, Restrict: restrictKey, Revoke: revokeKey };

export function KeysPage() {
  const mayWrite = useMay('keys:write');
  const mayRead = useMay('keys:read');
  return html`
    <div class="toolbar">
      <p class="quiet">Send a key as <code>Authorization: Bearer …</code> from your servers only. Rotate keys regularly.</p>
      ${mayWrite && html`<${FormButton} label="New key" form=${newKey} isPrimary />`}
    </div>
    ${mayRead ? html`<${Keys} mayWrite=${mayWrite} />` : html`<${Empty}>In this session, keys are not listed.<//>`}`;
}

function Keys({ mayWrite }: { mayWrite: boolean }) {
  const list = useList<PortalKeyDocument>('/portal/v1/keys');
  return html`<${KeyList<PortalKeyDocument>} list=${list} forms=${mayWrite ? FORMS : undefined} empty="There are no keys yet." />`;
}
