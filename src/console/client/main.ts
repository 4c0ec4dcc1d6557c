/** Entry of the console: session, navigation, and the page of the current address. */
import { html, render } from 'htm/preact';
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { SessionDocument } from '../../admin-api/responses.ts';
import {
  CallError,
  call,
  endSession,
  type Failure,
  failureFrom,
  SESSION_ENDED,
  SESSION_PATH,
} from '../../pages/client/api.ts';
import { Advice, badge, Empty, Loading, Problem, SearchForm } from '../../pages/client/components.ts';
import { Announcements } from '../../pages/client/dialog.ts';
import { entryOf } from '../../pages/client/entry-of.ts';
import { useOutage } from '../../pages/client/resources.ts';
import {
  at,
  followLinks,
  keepScroll,
  navigate,
  type Place,
  searchAddress,
  usePlace,
} from '../../pages/client/router.ts';
import { TopBar } from '../../pages/client/top-bar.ts';
import { AuditPage } from './audit-page.ts';
import { ConfigurationPage } from './configuration-page.ts';
import { CustomerPage } from './customer-page.ts';
import { CustomersPage } from './customers-page.ts';
import { KeysPage } from './keys-page.ts';
import { LimitsPage } from './limits-page.ts';
import { LoginPage } from './login-page.ts';
import { NoticesPage } from './notices-page.ts';
import { OverviewPage } from './overview-page.ts';
import { mayBeSecret, SearchPage } from './search-page.ts';
import { SessionContext } from './session.ts';

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
  const [failure, setFailure] = useState<Failure>();
  const findSession = () =>
    call<SessionDocument>('GET', SESSION_PATH).then(setSession, (error: unknown) => {
      if (error instanceof CallError && error.failure.status === 401) setSession(null);
      else setFailure(failureFrom(error));
    });
  useEffect(() => {
    const end = () => {
      setSession(null);
      setHasEnded(true);
    };
    window.addEventListener(SESSION_ENDED, end);
    void findSession();
    return () => window.removeEventListener(SESSION_ENDED, end);
  }, []);

  const retry = () => {
    setFailure(undefined);
    void findSession();
  };
  if (failure)
    return html`<main class="login"><h1>Tollgate</h1><${Problem} failure=${failure} retry=${retry} /></main>`;
  if (session === undefined) return html`<main class="login"><${Loading} /></main>`;
  if (session === null) return html`<${LoginPage} hasEnded=${hasEnded} onLogin=${setSession} />`;
  const logOut = async () => {
    await endSession();
    setHasEnded(false);
    setSession(null);
  };
  return html`<${SessionContext.Provider} value=${session}><${Shell} session=${session} logOut=${logOut} /><//>`;
}

function Shell({ session, logOut }: { session: SessionDocument; logOut: () => void }) {
  const place = usePlace();
  const { installation } = session;
  const [section = '', customer] = place.segments;
  const [title, Page] =
    section === 'search' ? (['Search', NotFound] as const) : (entryOf(PAGES, section) ?? ['Not found', NotFound]);
  const outage = useOutage();
  const [secret, setSecret] = useState('');
  const isSearch = section === 'search';
  const searched = isSearch ? (place.query.text ?? secret) : '';
  const isCustomer = section === 'customers' && customer !== undefined;
  const heading = isCustomer ? customer : title;
  useEffect(() => {
    document.title = `${heading} · ${installation?.name ?? 'Tollgate'}`;
    // Screen readers read the new page's heading.
    document.querySelector<HTMLElement>('h1')?.focus({ preventScroll: true });
  }, [heading]);
  return html`
    <a class="skip" href="#main">Skip to the content</a>
    <${TopBar} outage=${outage}>
      <a class="brand" href=${at()}>Tollgate</a>
      ${installation?.name && html`<span class=${`installation ${installation.color}`}>${installation.name}</span>`}
      <nav aria-label="Pages">
        ${Object.entries(PAGES).map(
          ([name, [label]]) =>
            html`<a href=${name === '' ? at() : at(name)} aria-current=${name === section ? 'page' : undefined}>${label}</a>`,
        )}
      </nav>
      <${Search} searched=${place.query.text && searched} onSecret=${setSecret} />
      <div class="who">
        ${session.scope === 'read' && badge('quiet', 'read only')}
        <span class="quiet" title="The name in the audit">${session.actor}</span>
        ${session.via === 'cookie' && html`<button type="button" onClick=${logOut}>Log out</button>`}
      </div>
    <//>
    <main id="main" tabindex="-1" class=${outage ? `stale ${outage.of}` : ''} key=${isCustomer ? customer : section}>
      ${isCustomer ? html`<${CustomerPage} id=${customer} query=${place.query} />` : html`<h1 tabindex="-1">${title}</h1>${isSearch ? html`<${SearchPage} key=${searched} text=${searched} />` : html`<${Page} ...${place} />`}`}
    </main>
    <${Announcements} />`;
}

function NotFound() {
  return html`<${Empty}>The console has no such page. <a href=${at()}>Overview</a><//>`;
}

/** Searches for every identifier that the console shows. A whole key gets neither into the address nor stays in the field. */
function Search({ searched = '', onSecret }: { searched?: string; onSecret: (text: string) => void }) {
  const [text, setText] = useState(searched);
  useEffect(() => setText(searched), [searched]);
  const search = (wanted: string) => {
    const isSecret = mayBeSecret(wanted);
    onSecret(isSecret ? wanted : '');
    if (wanted) navigate(isSecret ? at('search') : searchAddress(wanted));
    if (isSecret) setText('');
  };
  return html`<div class="find"><${SearchForm} text=${text} onText=${setText} onSearch=${search} autocomplete="off" spellcheck=${false}
    aria-label="Find a customer, key, notice or request" placeholder="Customer, key or any id" /></div>`;
}

const ADVICE = {
  store_unavailable: 'The store does not respond. Check it, then try again; the overview shows the last error.',
  forbidden: 'Your session may only read. Log in with a token that has the scope tollgate:write.',
};

followLinks();
keepScroll();
const root = document.getElementById('app');
if (root) render(html`<${Advice.Provider} value=${ADVICE}><${App} /><//>`, root);
