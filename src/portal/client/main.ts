/** Entry of the portal: exchanges the code of a link for a session, and shows what its scopes allow. */
import { html, render } from 'htm/preact';
import type { ComponentType } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import {
  CallError,
  call,
  endSession,
  type Failure,
  failureFrom,
  keepToSession,
  SESSION_ENDED,
  SESSION_PATH,
  startSession,
} from '../../pages/client/api.ts';
import { Advice, Loading, Problem } from '../../pages/client/components.ts';
import { Announcements, announce } from '../../pages/client/dialog.ts';
import { useOutage } from '../../pages/client/resources.ts';
import { at, followLinks, usePlace } from '../../pages/client/router.ts';
import { TopBar } from '../../pages/client/top-bar.ts';
import type { PortalSessionDocument, PortalSettings } from '../../portal-api/portal-documents.ts';
import { accent } from './accent.ts';
import { KeysPage } from './keys-page.ts';
import { linkCode } from './link-code.ts';
import { type PortalScope, SessionContext } from './portal-context.ts';
import { UsagePage } from './usage-page.ts';

interface Section {
  readonly name: string;
  readonly title: string;
  readonly page: ComponentType;
  /** One of them is enough. */
  readonly scopes: readonly PortalScope[];
}

const SECTIONS: readonly Section[] = [
  { name: '', title: 'Usage', page: UsagePage, scopes: ['usage:read'] },
  { name: 'keys', title: 'API keys', page: KeysPage, scopes: ['keys:read', 'keys:write'] },
];

const ADVICE = {
  customer_suspended: 'Contact support to have the account reactivated.',
  quota_not_configured: 'Contact support: your account needs a plan with a limit.',
  store_unavailable: 'Try again in a minute.',
  too_many_writes: 'Try again later.',
  too_many_reads: 'Try again in a second.',
};

/** Why there is no session, and so no data. */
const REASONS = {
  link: 'This link was used before, or is older than five minutes.',
  none: 'No session is open in this browser.',
  ended: 'The session has ended, or another one was opened in this browser.',
  left: 'You are signed out.',
};

type State = PortalSessionDocument | { readonly reason: keyof typeof REASONS; readonly returnUrl?: string | null };

async function openSession(): Promise<State> {
  try {
    const opened = linkCode === undefined ? undefined : await startSession<PortalSessionDocument>({ code: linkCode });
    // Not after the call: another tab may have opened another session by then.
    keepToSession();
    return opened ?? (await call<PortalSessionDocument>('GET', SESSION_PATH));
  } catch (error) {
    if (!(error instanceof CallError) || error.failure.status !== 401) throw error;
    return { reason: linkCode === undefined ? 'none' : 'link' };
  }
}

function App() {
  const [settings, setSettings] = useState<PortalSettings>();
  const [state, setState] = useState<State>();
  const [failure, setFailure] = useState<Failure>();
  const open = async () => {
    setFailure(undefined);
    try {
      const loaded = settings ?? (await call<PortalSettings>('GET', '/portal/settings'));
      document.title = loaded.title;
      if (loaded.accent_color !== null)
        document.documentElement.style.setProperty('--accent', accent(loaded.accent_color));
      setSettings(loaded);
      setState(await openSession());
    } catch (error) {
      setFailure(failureFrom(error));
    }
  };
  useEffect(() => void open(), []);

  const title = settings?.title ?? '';
  if (failure) return html`<main class="login"><h1>${title}</h1><${Problem} failure=${failure} retry=${open} /></main>`;
  if (settings === undefined || state === undefined) return html`<main class="login"><${Loading} /></main>`;
  if ('reason' in state) return noSession(settings, state);
  const leave = (reason: keyof typeof REASONS) => setState({ reason, returnUrl: state.return_url });
  return html`<${SessionContext.Provider} value=${state}><${Shell} settings=${settings} session=${state} leave=${leave} /><//>`;
}

function noSession(
  { title, support_url: supportUrl }: PortalSettings,
  { reason, returnUrl }: Exclude<State, PortalSessionDocument>,
) {
  return html`<main class="login">
    <h1>${title}</h1>
    <div class="panel">
      <p role="alert"><strong>${REASONS[reason]}</strong></p>
      <p>To see your usage and keys, open this page again from your account: each time, you get a new link.</p>
      ${returnUrl && html`<p>${backLink(returnUrl)}</p>`}
      ${supportUrl && html`<p>${supportLink(supportUrl)}</p>`}
    </div>
  </main>`;
}

const backLink = (url: string) => html`<a href=${url}>Back to ${new URL(url).host}</a>`;
const supportLink = (url: string) => html`<a href=${url} target="_blank" rel="noopener noreferrer">Support</a>`;

interface ShellProps {
  readonly settings: PortalSettings;
  readonly session: PortalSessionDocument;
  readonly leave: (reason: 'ended' | 'left') => void;
}

function Shell({ settings, session, leave }: ShellProps) {
  const { title, support_url: supportUrl } = settings;
  const { customer, customer_name: name, suspended, return_url: returnUrl } = session;
  const outage = useOutage();
  const sections = SECTIONS.filter(({ scopes }) => scopes.some((scope) => session.scopes.includes(scope)));
  const [segment] = usePlace().segments;
  const section = sections.find((each) => each.name === segment) ?? sections[0];
  const heading = section?.title ?? 'Nothing to show';
  const shown = useRef<string>(undefined);
  useEffect(() => {
    const end = () => leave('ended');
    window.addEventListener(SESSION_ENDED, end);
    return () => window.removeEventListener(SESSION_ENDED, end);
  }, [leave]);
  useEffect(() => {
    document.title = `${heading} · ${title}`;
    // Screen readers read the new page's heading. The first page begins at its top, as any document does.
    if (shown.current !== undefined) document.querySelector<HTMLElement>('h1')?.focus({ preventScroll: true });
    shown.current = heading;
  }, [heading]);
  const signOut = () =>
    endSession().then(
      () => leave('left'),
      (error) => announce(failureFrom(error).detail),
    );
  return html`
    <a class="skip" href="#main">Skip to the content</a>
    <${TopBar} outage=${outage}>
      <span class="brand">${title}</span>
      <nav aria-label="Pages">
        ${sections.map(
          (each) =>
            html`<a href=${each.name === '' ? at() : at(each.name)} aria-current=${each === section ? 'page' : undefined}>${each.title}</a>`,
        )}
      </nav>
      <div class="who">
        <span class="quiet">${name ?? customer}</span>
        ${returnUrl && backLink(returnUrl)}
        ${supportUrl && supportLink(supportUrl)}
        <button type="button" onClick=${signOut}>Sign out</button>
      </div>
    <//>
    <main id="main" tabindex="-1" class=${outage ? `stale ${outage.of}` : ''} key=${section?.name}>
      <h1 tabindex="-1">${heading}</h1>
      ${
        suspended &&
        html`<p class="notice"><strong>This account is suspended.</strong> Its requests are refused, and its keys can be seen but not changed. Contact support.</p>`
      }
      ${section && html`<${section.page} />`}
    </main>
    <${Announcements} />`;
}

followLinks();
const root = document.getElementById('app');
if (root) render(html`<${Advice.Provider} value=${ADVICE}><${App} /><//>`, root);
