/** The customer's keys: which is used, which expires, and what can be done with them. */
import { html } from 'htm/preact';
import type {
  PortalKeyDocument,
  PortalNewKeyDocument,
  PortalSessionDocument,
} from '../../api/portal/portal-documents.ts';
import { address, call } from '../client/api.ts';
import { Empty, timeAgo } from '../client/components.ts';
import { FormButton, type FormDescription } from '../client/form-dialog.ts';
import { EXPIRES, GRACE, KeyInHeader, NAME, restrictionFields, showKey, titleOf } from '../client/key-fields.ts';
import { KeyList } from '../client/key-list.ts';
import { useList } from '../client/resources.ts';

export function KeysPage({ session }: { session: PortalSessionDocument }) {
  return html`
    <div class="toolbar">
      <p class="quiet">Send a key as <${KeyInHeader} /> from your servers only. Rotate keys regularly.</p>
      <${FormButton} label="New key" form=${newKey} isPrimary />
    </div>
    ${session.scopes.includes('keys:read') ? html`<${Keys} />` : html`<${Empty}>In this session, keys are not listed.<//>`}`;
}

function Keys() {
  const list = useList(address('GET /portal/v1/keys', {}));
  return html`<${KeyList<PortalKeyDocument>} list=${list} forms=${FORMS} empty="There are no keys yet." />`;
}

const FORMS = { Rotate: rotateKey, Rename: renameKey, Restrict: restrictKey, Revoke: revokeKey };

function newKey(): FormDescription<PortalNewKeyDocument> {
  const hint = 'What uses it, such as "billing, production".';
  return {
    title: 'New key',
    label: 'Create and copy',
    fields: [{ ...NAME, hint, input: { ...NAME.input, autofocus: true } }, EXPIRES, ...restrictionFields()],
    submit: ({ change }) => call('POST /portal/v1/keys', { body: change }),
    show: ({ key, name }, onClose) => showKey(name === null ? 'Your new key' : `New key: ${name}`, key, onClose),
  };
}

function rotateKey(key: PortalKeyDocument): FormDescription<PortalNewKeyDocument> {
  return {
    title: `Rotate ${titleOf(key)}`,
    label: 'Rotate and copy',
    text: 'You get a new key. The old one goes on working for the time you choose, so that you can replace it everywhere without a refused request.',
    fields: [GRACE],
    submit: ({ change }) => call('POST /portal/v1/keys/:keyId/rotate', { keyId: key.id, body: change }),
    show: ({ key: value }, onClose) => showKey(`New key for ${titleOf(key)}`, value, onClose),
  };
}

function renameKey(key: PortalKeyDocument): FormDescription {
  return {
    title: `Rename ${titleOf(key)}`,
    label: 'Save',
    fields: [{ ...NAME, current: key.name, input: { ...NAME.input, autofocus: true } }],
    submit: ({ change }) => call('PATCH /portal/v1/keys/:keyId', { keyId: key.id, body: change }),
    said: 'Renamed.',
  };
}

function restrictKey(key: PortalKeyDocument): FormDescription {
  return {
    title: `Restrict ${titleOf(key)}`,
    label: 'Restrict key',
    text: 'Requests beyond these are refused with 403 within a second. You can restrict the key further later, but only support can lift a restriction.',
    fields: restrictionFields(key),
    submit: ({ change }) => call('PATCH /portal/v1/keys/:keyId', { keyId: key.id, body: change }),
    said: `Restricted ${titleOf(key)}.`,
  };
}

function revokeKey(key: PortalKeyDocument): FormDescription {
  const { last_used_at: usedAt } = key;
  return {
    title: `Revoke ${titleOf(key)}?`,
    label: 'Revoke key',
    isDangerous: true,
    text: html`Requests with this key are refused with 401 within a second. This cannot be undone.
      ${usedAt && html` It was last used <strong>${timeAgo(usedAt)}</strong>.`}`,
    submit: () => call('DELETE /portal/v1/keys/:keyId', { keyId: key.id }),
    said: `Revoked ${titleOf(key)}.`,
  };
}
