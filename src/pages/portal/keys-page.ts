/** The customer's keys: which is used, which expires, and what can be done with them. */
import { html } from 'htm/preact';
import { useContext } from 'preact/hooks';
import type {
  PortalKeyDocument,
  PortalNewKeyDocument,
  PortalSessionDocument,
  PortalSettings,
} from '../../api/portal/portal-documents.ts';
import { address, call } from '../client/api.ts';
import { Empty, timeAgo } from '../client/components.ts';
import { FormButton, type FormDescription, MayWrite } from '../client/form-dialog.ts';
import {
  EXPIRES,
  GRACE,
  KeyInHeader,
  limitField,
  NAME,
  restrictionFields,
  showKey,
  titleOf,
} from '../client/key-fields.ts';
import { KeyList } from '../client/key-list.ts';
import { useList, useResource } from '../client/resources.ts';
import { type OfferedScope, scopeChoice } from './scope-choice.ts';

interface KeysPageProps {
  readonly session: PortalSessionDocument;
  readonly settings: PortalSettings;
}

export function KeysPage(props: KeysPageProps) {
  return html`<${useContext(MayWrite) ? ChangeableKeys : Keys} ...${props} />`;
}

function ChangeableKeys(props: KeysPageProps) {
  const { data } = useResource(address('GET /portal/v1/scopes', {}));
  return html`<${Keys} ...${props} scopes=${data?.items} />`;
}

/** `scopes`: those that a key can be restricted to. */
function Keys({ session, settings, scopes = [] }: KeysPageProps & { scopes?: readonly OfferedScope[] }) {
  const { api_url: apiUrl } = settings;
  return html`
    <div class="toolbar">
      <p class="quiet">Send a key as <${KeyInHeader} />${apiUrl && html` to <code>${apiUrl}</code>`} from your servers only. Rotate keys regularly.</p>
      <${FormButton} label="New key" form=${() => newKey(scopes)} isPrimary />
    </div>
    ${session.scopes.includes('keys:read') ? html`<${KeyTable} scopes=${scopes} />` : html`<${Empty}>You can create keys here, but not see the list of them.<//>`}`;
}

function KeyTable({ scopes }: { scopes: readonly OfferedScope[] }) {
  const list = useList(address('GET /portal/v1/keys', {}));
  const restrict = (key: PortalKeyDocument) => restrictKey(key, scopes);
  const forms = { Rotate: rotateKey, Rename: renameKey, Limit: limitKey, Restrict: restrict, Revoke: revokeKey };
  const empty = `You have no keys yet.${useContext(MayWrite) ? ' Create the first one with "New key".' : ''}`;
  return html`<${KeyList<PortalKeyDocument>} list=${list} forms=${forms} empty=${empty} />`;
}

/** `key`: that is restricted further, to some of what it may now; undefined: a new one. */
function fieldsFor(scopes: readonly OfferedScope[], key?: PortalKeyDocument) {
  const [ofScopes, ofAddresses] = restrictionFields(key);
  const offered = key?.scopes
    ? key.scopes.map((scope) => scopes.find((each) => each.scope === scope) ?? { scope, routes: [] })
    : scopes;
  const hint = key?.scopes ? 'Uncheck what the key no longer needs.' : 'What the key may do. None checked: everything.';
  return [...(offered.length > 0 ? [{ ...ofScopes, control: scopeChoice(offered, hint) }] : []), ofAddresses];
}

function newKey(scopes: readonly OfferedScope[]): FormDescription<PortalNewKeyDocument> {
  const hint = 'What uses it, such as "billing, production".';
  return {
    title: 'New key',
    label: 'Create and copy',
    fields: [{ ...NAME, hint, input: { ...NAME.input, autofocus: true } }, EXPIRES, limitField(), ...fieldsFor(scopes)],
    submit: ({ change }) => call('POST /portal/v1/keys', { body: change }),
    show: ({ key, name, example_url: url }, onClose) =>
      showKey(name === null ? 'Your new key' : `New key: ${name}`, key, onClose, url),
  };
}

function rotateKey(key: PortalKeyDocument): FormDescription<PortalNewKeyDocument> {
  return {
    title: `Rotate ${titleOf(key)}`,
    label: 'Rotate and copy',
    text: 'You get a new key. The old one keeps working for the time you choose, so that you can replace it everywhere without a refused request.',
    fields: [GRACE],
    submit: ({ change }) => call('POST /portal/v1/keys/:keyId/rotate', { keyId: key.id, body: change }),
    show: ({ key: value, example_url: url }, onClose) => showKey(`New key for ${titleOf(key)}`, value, onClose, url),
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

function limitKey(key: PortalKeyDocument): FormDescription {
  return {
    title: `Limit ${titleOf(key)}`,
    label: 'Save',
    text: 'So that one key cannot use up your account. It applies within a second, and what the key used in the last hour counts.',
    fields: [limitField(key)],
    submit: ({ change }) => call('PATCH /portal/v1/keys/:keyId', { keyId: key.id, body: change }),
    said: 'Saved.',
  };
}

function restrictKey(key: PortalKeyDocument, scopes: readonly OfferedScope[]): FormDescription {
  return {
    title: `Restrict ${titleOf(key)}`,
    label: 'Restrict key',
    text: 'All other requests with this key are refused with 403 within a second. You can restrict it further later, but only support can lift a restriction.',
    fields: fieldsFor(scopes, key),
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
