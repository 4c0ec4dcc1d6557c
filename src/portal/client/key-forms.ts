/** Actions on the customer's own keys. */
import { html } from 'htm/preact';
import { call } from '../../pages/client/api.ts';
import { time } from '../../pages/client/components.ts';
import type { FormDescription } from '../../pages/client/form-dialog.ts';
import { EXPIRES, GRACE, NAME, restrictionFields, showKey, titleOf } from '../../pages/client/key-fields.ts';
import type { PortalKeyDocument, PortalNewKeyDocument } from '../../portal-api/portal-documents.ts';

const KEYS = '/portal/v1/keys';
const pathOf = (key: PortalKeyDocument) => `${KEYS}/${encodeURIComponent(key.id)}`;

export function newKey(): FormDescription<PortalNewKeyDocument> {
  const hint = 'What uses it, such as "billing, production".';
  return {
    title: 'New key',
    label: 'Create and copy',
    fields: [{ ...NAME, hint, input: { ...NAME.input, autofocus: true } }, EXPIRES, ...restrictionFields()],
    submit: ({ change }) => call('POST', KEYS, { json: change }),
    show: ({ key, name }, onClose) => showKey(name === null ? 'Your new key' : `New key: ${name}`, key, onClose),
  };
}

export function rotateKey(key: PortalKeyDocument): FormDescription<PortalNewKeyDocument> {
  return {
    title: `Rotate ${titleOf(key)}`,
    label: 'Rotate and copy',
    text: 'You get a new key. The old one goes on working for the time you choose, so that you can replace it everywhere without a refused request.',
    fields: [GRACE],
    submit: ({ change }) => call('POST', `${pathOf(key)}/rotate`, { json: change }),
    show: ({ key: value }, onClose) => showKey(`New key for ${titleOf(key)}`, value, onClose),
  };
}

export function renameKey(key: PortalKeyDocument): FormDescription {
  return {
    title: `Rename ${titleOf(key)}`,
    label: 'Save',
    fields: [{ ...NAME, current: key.name, input: { ...NAME.input, autofocus: true } }],
    submit: ({ change }) => call('PATCH', pathOf(key), { json: change }),
    said: 'Renamed.',
  };
}

export function restrictKey(key: PortalKeyDocument): FormDescription {
  return {
    title: `Restrict ${titleOf(key)}`,
    label: 'Restrict key',
    text: 'Requests beyond these are refused with 403 within a second. You can restrict the key further later, but only support can lift a restriction.',
    fields: restrictionFields(key),
    submit: ({ change }) => call('PATCH', pathOf(key), { json: change }),
    said: `Restricted ${titleOf(key)}.`,
  };
}

export function revokeKey(key: PortalKeyDocument): FormDescription {
  const { last_used_at: usedAt } = key;
  return {
    title: `Revoke ${titleOf(key)}?`,
    label: 'Revoke key',
    isDangerous: true,
    text: html`Requests with this key are refused with 401 within a second. This cannot be undone.
      ${usedAt && html` It was last used <strong>${time(usedAt, { isRelative: true })}</strong>.`}`,
    submit: () => call('DELETE', pathOf(key)),
    said: `Revoked ${titleOf(key)}.`,
  };
}
