/** Finds what an identifier names: customers, keys, notices and requests. */
import { html } from 'htm/preact';
import { useEffect, useState } from 'preact/hooks';
import type { RequestOf } from '../client/api.ts';
import { address } from '../client/api.ts';
import { Command, Empty, Panel } from '../client/components.ts';
import { tollgate } from '../client/format.ts';
import { useList } from '../client/resources.ts';
import { Customers } from './customers-page.ts';
import { KeyTable } from './keys-page.ts';
import { Notices } from './notices-page.ts';

/** Addresses are logged, so no more of a key may be in them. The admin API refuses more. */
const MAX_BEGINNING_LENGTH = 12;
const MAX_SEARCH_LENGTH = 200;
/** Keys have no other characters. */
const TOKEN = /^[\w.~+/-]+=*$/;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** Forms of ids that keys rarely have: UUID, ULID and the ObjectId of MongoDB. */
const ID = new RegExp(`${UUID.source}|^[0-7][0-9A-HJKMNP-TV-Z]{25}$|^[0-9a-f]{24}$`, 'i');
/** As in generated keys, and in most of other systems. */
const RANDOM = /(?=[^\d]*\d)(?=.*[A-Za-z])[A-Za-z0-9+/~]{16,}/;

/** Returns whether the text may be a whole key, of which only the hash may leave the browser. */
export function mayBeSecret(text: string): boolean {
  if (text.length <= MAX_BEGINNING_LENGTH || !TOKEN.test(text) || /^(?:key|msg)_/.test(text)) return false;
  return text.startsWith('tg_') || UUID.test(text) || RANDOM.test(text);
}

/** `text`: possibly a whole key, so it must not get into an address. Of another text, render another element. */
export function SearchPage({ text }: { text: string }) {
  const digest = useDigest(text);
  const [isNoKey, setIsNoKey] = useState(false);
  if (text === '')
    return html`<${Empty}>Type the id or name of a customer, a key or its beginning, or an id above.<//>`;
  const isSecret = mayBeSecret(text) && !isNoKey;
  const asId = html`<button type="button" onClick=${() => setIsNoKey(true)}>Search for it as an id</button>`;
  // A text in the form of an id that is the hash of no key is none, so it may be sent.
  const onNone = ID.test(text) ? () => setIsNoKey(true) : undefined;
  const keys = html`<${Keys} text=${text} digest=${digest} isSecret=${isSecret} onNone=${onNone} />`;
  const isFirst = mayBeSecret(text) || /^(?:key|msg)_/.test(text);
  return html`<div class="grid">
    ${
      UUID.test(text) &&
      html`<${Panel} title="Request" wide><p>If this is a <code>request_id</code>, the log of the gateway has its customer, key and outcome:</p>
      <${Command} line=${`jq 'select(.request_id == "${text}")' LOG_FILE`} /><//>`
    }
    ${text.startsWith('msg_') && html`<${FoundNotices} id=${text} />`}
    ${isFirst && keys}
    ${
      isSecret
        ? html`<p class="wide">Customers were not searched: the text may be a whole key, which must not get into logs. ${asId}</p>`
        : html`<${Panel} title="Customers" wide><${Customers} search=${text.slice(0, MAX_SEARCH_LENGTH)} /><//>`
    }
    ${!isFirst && keys}
  </div>`;
}

interface KeysProps {
  readonly text: string;
  readonly digest: string | undefined;
  readonly isSecret: boolean;
  /** Called if no key has the digest. */
  readonly onNone: (() => void) | undefined;
}

function Keys({ text, digest, isSecret, onNone }: KeysProps) {
  if (text.startsWith('key_')) {
    return html`<${FoundKeys} filter=${{ id: text }} command=${tollgate('keys', 'show', text)} empty=${`No key has the id ${text}.`} />`;
  }
  if (!TOKEN.test(text) || text.startsWith('msg_')) return null;
  if (text.length <= MAX_BEGINNING_LENGTH) {
    return html`<${FoundKeys} filter=${{ prefix: text }} command=${tollgate('keys', 'find', { prefix: text })} empty=${`No key begins with ${text}.`} />`;
  }
  if (digest !== undefined) {
    const empty = `No key of which only the hash was sent: ${isSecret ? `${text.slice(0, MAX_BEGINNING_LENGTH)}…` : text}.`;
    return html`<${FoundKeys} filter=${{ sha256: digest }} command=${`${tollgate('keys', 'find')} < FILE`} empty=${empty} onNone=${onNone} />`;
  }
  if (!isSecret || window.isSecureContext) return null;
  return html`<${Panel} title="Keys" wide><p>A whole key can be searched for only on https or a loopback address, where the browser can hash it.
    Search for its first ${MAX_BEGINNING_LENGTH} characters instead.</p><//>`;
}

interface FoundKeysProps {
  readonly filter: RequestOf<'GET /admin/v1/keys'>['query'];
  readonly command: string;
  readonly empty: string;
  readonly onNone?: (() => void) | undefined;
}

function FoundKeys({ filter = {}, command, empty, onNone }: FoundKeysProps) {
  const list = useList(address('GET /admin/v1/keys', { query: filter }), { isFiltered: 'prefix' in filter });
  const isNone = list.isComplete && list.rows.length === 0;
  useEffect(() => {
    if (isNone) onNone?.();
  }, [isNone]);
  return html`<${Panel} title="Keys" wide command=${command}><${KeyTable} list=${list} withCustomer empty=${empty} /><//>`;
}

function FoundNotices({ id }: { id: string }) {
  const list = useList(address('GET /admin/v1/notices', { query: { id } }));
  const empty = `No undelivered notice has the id ${id}. Delivered notices are not kept.`;
  return html`<${Panel} title="Notices" wide command=${tollgate('notices', 'list')}><${Notices} list=${list} empty=${empty} /><//>`;
}

/** Returns the SHA-256 in hex; undefined until it is known, or if the browser offers digests on https and loopback only. */
function useDigest(text: string): string | undefined {
  const [digest, setDigest] = useState<string>();
  useEffect(() => {
    if (!window.isSecureContext) return;
    const bytes = crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
    void bytes.then((result) => setDigest(Array.from(new Uint8Array(result), hexByte).join('')));
  }, [text]);
  return digest;
}

const hexByte = (byte: number) => byte.toString(16).padStart(2, '0');
