/** Entry of the console: session, navigation, and the page of the current address. */
import { html, render } from 'htm/preact';
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { SessionDocument } from '../../api/admin/responses.ts';
import { endSession, SESSION_ENDED, SESSION_PATH, send, sessionOf } from '../client/api.ts';
import { Advice, badge, Empty, Loading, Problem, SearchForm } from '../client/components.ts';
import { MayWrite } from '../client/form-dialog.ts';
import { entryOf } from '../client/format.ts';
import { useAction, useWindowEvents } from '../client/hooks.ts';
import { KeyHeader } from '../client/key-fields.ts';
import { at, followLinks, keepScroll, navigate, type Place, searchAddress, usePlace } from '../client/router.ts';
import { Shell } from '../client/shell.ts';
import { possibleKeys } from '../client/whole-keys.ts';
import { AuditPage } from './audit-page.ts';
import { ConfigurationPage } from './configuration-page.ts';
import { type CustomerName, CustomerPage } from './customer-page.ts';
import { CustomersPage } from './customers-page.ts';
import { KeysPage } from './keys-page.ts';
import { LimitsPage } from './limits-page.ts';
import { LoginPage } from './login-page.ts';
import { NoticesPage } from './notices-page.ts';
import { OverviewPage } from './overview-page.ts';
import { SearchPage } from './search-page.ts';

const PAGES: Readonly<Record<string, readonly [title: string, page: ComponentType<Place>]>> = {
  '': ['Overview', OverviewPage],
  customers: ['Customers', CustomersPage],
  keys: ['Keys', KeysPage],
  notices: ['Notices', NoticesPage],
  limits: ['Limits', LimitsPage],
  audit: ['Audit', AuditPage],
  configuration: ['Configuration', ConfigurationPage],
};

function App() {
  /** Undefined: not known yet. Null: nobody is logged in. */
  const [session, setSession] = useState<SessionDocument | null>();
  const [hasEnded, setHasEnded] = useState(false);
  const { failure, run: findSession } = useAction(async () => {
    setSession((await sessionOf(send<SessionDocument>('GET', SESSION_PATH))) ?? null);
  });
  useEffect(() => void findSession(), []);
  useWindowEvents(() => {
    setSession(null);
    setHasEnded(true);
  }, SESSION_ENDED);
  if (failure)
    return html`<main class="login"><h1>Tollgate</h1><${Problem} failure=${failure} retry=${findSession} /></main>`;
  if (session === undefined) return html`<main class="login"><${Loading} /></main>`;
  if (session === null) return html`<${LoginPage} hasEnded=${hasEnded} onLogin=${setSession} />`;
  const logOut = async () => {
    await endSession();
    setHasEnded(false);
    setSession(null);
  };
  return html`<${KeyHeader.Provider} value=${session.key_header}><${MayWrite.Provider} value=${session.scope === 'write'}>
    <${Pages} session=${session} logOut=${logOut} />
  <//><//>`;
}

function Pages({ session, logOut }: { session: SessionDocument; logOut: () => void }) {
  const place = usePlace();
  const [secret, setSecret] = useState('');
  const [named, setNamed] = useState<CustomerName>();
  const [section = '', customer] = place.segments;
  const { installation } = session;
  const searched = section === 'search' ? (place.query.text ?? secret) : '';
  const shown = () => {
    if (section === 'search') return ['Search', html`<${SearchPage} key=${searched} text=${searched} />`] as const;
    if (section === 'customers' && customer) {
      const above = html`<small><a href=${at('customers')}>Customers</a></small>`;
      const name = (named?.id === customer && named.name) || customer;
      return [name, html`<${CustomerPage} id=${customer} query=${place.query} onName=${setNamed} />`, above] as const;
    }
    const [title, Page] = entryOf(PAGES, section) ?? ['Not found', NotFound];
    return [title, html`<${Page} ...${place} />`] as const;
  };
  const [heading, content, above] = shown();
  const brand = html`<a class="brand" href=${at()}>Tollgate</a>
    ${installation?.name && html`<span class=${`installation ${installation.color}`} title=${installation.name}>${installation.name}</span>`}`;
  const tools = html`<${Search} searched=${place.query.text && searched} onSecret=${setSecret} />
    <div class="who">
      ${session.scope === 'read' && badge('quiet', 'read only')}
      <span class="quiet" title=${`The name in the audit: ${session.actor}`}>${session.actor}</span>
      ${session.via === 'cookie' && html`<button type="button" onClick=${logOut}>Log out</button>`}
    </div>`;
  const pages = Object.entries(PAGES).map(([name, [title]]) => [name, title]);
  return html`<${Shell} site=${installation?.name ?? 'Tollgate'} brand=${brand} pages=${pages} current=${section}
    tools=${tools} heading=${heading} subject=${customer} above=${above}>${content}<//>`;
}

function NotFound() {
  return html`<${Empty}>The console has no such page. <a href=${at()}>Overview</a><//>`;
}

/** Searches for what the console shows. A whole key gets neither into the address nor stays in the field. */
function Search({ searched = '', onSecret }: { searched?: string; onSecret: (text: string) => void }) {
  const [text, setText] = useState(searched);
  useEffect(() => setText(searched), [searched]);
  const search = (wanted: string) => {
    const mayHaveKey = possibleKeys(wanted).length > 0;
    onSecret(mayHaveKey ? wanted : '');
    if (wanted) navigate(mayHaveKey ? at('search') : searchAddress(wanted));
    if (mayHaveKey) setText('');
  };
  useWindowEvents((event) => {
    const { key, ctrlKey, metaKey, altKey, target } = event as KeyboardEvent;
    const isTyped = target instanceof Element && target.closest('input, textarea, select, dialog');
    if (key !== '/' || ctrlKey || metaKey || altKey || isTyped) return;
    event.preventDefault();
    const field = document.querySelector<HTMLInputElement>('.find input');
    field?.focus();
    field?.select();
  }, 'keydown');
  return html`<div class="find" role="search"><${SearchForm} text=${text} onText=${setText} onSearch=${search} autocomplete="off" spellcheck=${false}
    aria-label="Find a customer, key, notice or request" aria-keyshortcuts="/" title="Press / to type here" placeholder="Name, key or any id" /></div>`;
}

const ADVICE = {
  store_unavailable: 'The store does not respond. Check it, then try again; the overview shows the last error.',
  forbidden: 'Your session may only read. Log in with a token that has the scope tollgate:write.',
};

followLinks();
keepScroll();
const root = document.getElementById('app');
if (root) render(html`<${Advice.Provider} value=${ADVICE}><${App} /><//>`, root);
