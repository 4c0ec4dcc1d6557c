/** Entry of the portal: exchanges the code of a link for a session, and shows what its scopes allow. */
import { html, render } from 'htm/preact';
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { PortalSessionDocument, PortalSettings } from '../../api/portal/portal-documents.ts';
import { accent } from '../../formats/accent-color.ts';
import { call, endSession, failureFrom, keepToSession, SESSION_ENDED, sessionOf, startSession } from '../client/api.ts';
import { Advice, Loading, Problem } from '../client/components.ts';
import { announce } from '../client/dialog.ts';
import { MayWrite } from '../client/form-dialog.ts';
import { useAction, useWindowEvents } from '../client/hooks.ts';
import { KeyHeader } from '../client/key-fields.ts';
import { followLinks, usePlace } from '../client/router.ts';
import { Shell } from '../client/shell.ts';
import { KeysPage } from './keys-page.ts';
import { linkCode } from './link-code.ts';
import { UsagePage } from './usage-page.ts';

type PortalPage = readonly [
  name: string,
  title: string,
  page: ComponentType<{ session: PortalSessionDocument; settings: PortalSettings }>,
  /** One of them is enough. */
  scopes: PortalSessionDocument['scopes'],
];

const PAGES: readonly PortalPage[] = [
  ['', 'Usage', UsagePage, ['usage:read']],
  ['keys', 'API keys', KeysPage, ['keys:read', 'keys:write']],
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
  none: 'You are not signed in.',
  ended: 'Your session has ended, or another one was opened in this browser.',
  left: 'You are signed out.',
};

type State = PortalSessionDocument | { readonly reason: keyof typeof REASONS; readonly returnUrl?: string | null };

async function openSession(): Promise<State> {
  const opened = linkCode && (await sessionOf(startSession<PortalSessionDocument>({ code: linkCode })));
  if (linkCode && !opened) return { reason: 'link' };
  // Not after the next call: another tab may have opened another session by then.
  keepToSession();
  return opened || ((await sessionOf(call('GET /portal/session', {}))) ?? { reason: 'none' });
}

function App() {
  const [settings, setSettings] = useState<PortalSettings>();
  const [state, setState] = useState<State>();
  const { failure, run: open } = useAction(async () => {
    const loaded = settings ?? (await call('GET /portal/settings', {}));
    document.title = loaded.title;
    if (loaded.accent_color !== null)
      document.documentElement.style.setProperty('--accent', accent(loaded.accent_color));
    const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]');
    if (icon && loaded.logo_url !== null) Object.assign(icon, { href: loaded.logo_url, type: '' });
    setSettings(loaded);
    setState(await openSession());
  });
  useEffect(() => void open(), []);

  const title = settings?.title ?? '';
  if (failure) return html`<main class="login"><h1>${title}</h1><${Problem} failure=${failure} retry=${open} /></main>`;
  if (settings === undefined || state === undefined) return html`<main class="login"><${Loading} /></main>`;
  if ('reason' in state) return noSession(settings, state);
  const mayWrite = state.scopes.includes('keys:write') && !state.suspended;
  const leave = (reason: keyof typeof REASONS) => setState({ reason, returnUrl: state.return_url });
  return html`<${KeyHeader.Provider} value=${settings.key_header}><${MayWrite.Provider} value=${mayWrite}>
    <${Pages} settings=${settings} session=${state} leave=${leave} />
  <//><//>`;
}

function noSession(settings: PortalSettings, { reason, returnUrl }: Exclude<State, PortalSessionDocument>) {
  const account = returnUrl ?? settings.home_url;
  return html`<main class="login">
    <h1>${logo(settings)}${settings.title}</h1>
    <div class="panel">
      <p role="alert"><strong>${REASONS[reason]}</strong></p>
      <p>To see your usage and API keys, open them from your account${reason === 'link' && ', where you get a new link each time'}.</p>
      ${account && html`<p><a class="go" href=${account}>Go to ${new URL(account).host}</a></p>`}
      <p class="links">${links(settings)}</p>
    </div>
  </main>`;
}

const logo = ({ logo_url: url }: PortalSettings) => url && html`<img class="logo" src=${url} alt="" />`;

const links = ({ docs_url: docs, support_url: support }: PortalSettings) => html`
  ${docs && linkOutside(docs, 'Documentation')}
  ${support && linkOutside(support, 'Support')}`;

const linkOutside = (url: string, text: string) =>
  html`<a href=${url} target="_blank" rel="noopener noreferrer">${text}</a>`;

interface PagesProps {
  readonly settings: PortalSettings;
  readonly session: PortalSessionDocument;
  readonly leave: (reason: 'ended' | 'left') => void;
}

function Pages({ settings, session, leave }: PagesProps) {
  const { title, support_url: supportUrl, home_url: homeUrl } = settings;
  const { customer, customer_name: name, suspended, return_url: returnUrl } = session;
  const account = returnUrl ?? homeUrl;
  const [segment] = usePlace().segments;
  const pages = PAGES.filter(([, , , scopes]) => scopes.some((scope) => session.scopes.includes(scope)));
  const [current, heading = 'Nothing to show', Page] = pages.find(([page]) => page === segment) ?? pages[0] ?? [];
  useWindowEvents(() => leave('ended'), SESSION_ENDED);
  const signOut = () =>
    endSession().then(
      () => leave('left'),
      (error) => announce(failureFrom(error).detail),
    );
  const tools = html`<div class="who">
    <span class="quiet">${name ?? customer}</span>
    ${account && html`<a href=${account}>Back to ${new URL(account).host}</a>`}
    ${links(settings)}
    <button type="button" onClick=${signOut}>Sign out</button>
  </div>`;
  return html`<${Shell} site=${title} brand=${html`<span class="brand">${logo(settings)}${title}</span>`} pages=${pages} current=${current}
    tools=${tools} heading=${heading}>
    ${
      suspended &&
      html`<p class="account-warning"><strong>This account is suspended.</strong> Its requests are refused, and its keys can be seen but not changed. ${supportUrl ? linkOutside(supportUrl, 'Contact support') : 'Contact support'}.</p>`
    }
    ${Page && html`<${Page} session=${session} settings=${settings} />`}
  <//>`;
}

followLinks();
const root = document.getElementById('app');
if (root) render(html`<${Advice.Provider} value=${ADVICE}><${App} /><//>`, root);
