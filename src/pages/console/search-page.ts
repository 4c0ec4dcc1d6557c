/** Finds what a text names: customers, keys, requests and notices. A whole key in it never leaves the browser: its hash does. */
import { html } from 'htm/preact';
import { useEffect, useState } from 'preact/hooks';
import { address, type Failure, failureFrom, type RequestOf } from '../client/api.ts';
import { Empty, Loading, Panel, Problem } from '../client/components.ts';
import { tollgate } from '../client/format.ts';
import { useList } from '../client/resources.ts';
import { setQuery } from '../client/router.ts';
import {
  canHash,
  hashOfKeyIn,
  looksSecret,
  MAX_BEGINNING_LENGTH,
  possibleKeys,
  secretIn,
} from '../client/whole-keys.ts';
import { Customers, customersCommand } from './customers-page.ts';
import { KeyTable } from './keys-page.ts';
import { Notices } from './notices-page.ts';
import { FoundRequests } from './requests.ts';

/** The gateway accepts no more. */
const MAX_SEARCH_LENGTH = 200;

interface Known {
  /** The hash of the key that the text has. */
  readonly sha256?: string | undefined;
  readonly failure?: Failure;
}

/** `text`: possibly a whole key, so it must not get into an address. Of another text, render another element. */
export function SearchPage({ text }: { text: string }) {
  const [known, setKnown] = useState<Known>();
  const [isNoKey, setIsNoKey] = useState(false);
  const parts = possibleKeys(text);
  const secret = secretIn(parts);
  useEffect(() => {
    let isShown = true;
    const show = (result: Known) => {
      if (!isShown) return;
      setKnown(result);
      // Reloading the page sends its address.
      if (!result.failure && result.sha256 === undefined && !parts.some(looksSecret))
        setQuery({ text }, { isSameStep: true });
    };
    hashOfKeyIn(parts).then(
      (sha256) => show({ sha256 }),
      (error) => show({ failure: failureFrom(error) }),
    );
    return () => {
      isShown = false;
    };
  }, []);
  if (text === '')
    return html`<${Empty}>Type any parts of a customer, a key, or an id above, in any order. The key <kbd>/</kbd> leads there.<//>`;
  if (known === undefined) return html`<${Loading} what="Searching" />`;
  if (known.failure) return html`<${Problem} failure=${known.failure} />`;
  if (known.sha256) {
    return html`<${FoundKeys} filter=${{ sha256: known.sha256 }} command=${`${tollgate('keys', 'find')} < FILE`} empty="The key is gone." />`;
  }
  if (secret && !isNoKey) {
    const shown = html`<code>${secret.slice(0, MAX_BEGINNING_LENGTH)}…</code>`;
    return html`<${Panel} title="Not found" wide>
      <p>${canHash ? html`No key of which only the hash was sent: ${shown}.` : html`${shown} may be a whole key, which browsers can hash only on https or a loopback address. Search for its first ${MAX_BEGINNING_LENGTH} characters.`}
        Nothing else was searched, because a whole key must not get into logs.</p>
      <p><button type="button" onClick=${() => setIsNoKey(true)}>It is no key: search for it as an id</button></p><//>`;
  }
  const search = text.slice(0, MAX_SEARCH_LENGTH);
  const isOneWord = !/\s/.test(text);
  // Shorter ones are names.
  const mayBeRequest = isOneWord && text.length >= 8;
  return html`<div class="grid">
    <${Panel} title="Customers" wide command=${customersCommand({ search })}><${Customers} search=${search} /><//>
    <${FoundKeys} filter=${{ search }} command=${tollgate('keys', 'find', { search })} empty="No key matches." />
    ${mayBeRequest && html`<${FoundRequests} id=${search} />`}
    ${isOneWord && text.startsWith('msg_') && html`<${FoundNotices} id=${text} />`}
  </div>`;
}

interface FoundKeysProps {
  readonly filter: RequestOf<'GET /admin/v1/keys'>['query'];
  readonly command: string;
  readonly empty: string;
}

function FoundKeys({ filter = {}, command, empty }: FoundKeysProps) {
  const list = useList(address('GET /admin/v1/keys', { query: filter }), { isFiltered: 'search' in filter });
  return html`<${Panel} title="Keys" wide command=${command}><${KeyTable} list=${list} withCustomer empty=${empty} /><//>`;
}

function FoundNotices({ id }: { id: string }) {
  const list = useList(address('GET /admin/v1/notices', { query: { id } }));
  const empty = `No undelivered notice has the id ${id}. Delivered notices are not kept.`;
  return html`<${Panel} title="Notices" wide command=${tollgate('notices', 'list')}><${Notices} list=${list} empty=${empty} /><//>`;
}
