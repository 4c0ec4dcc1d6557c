/** Entry of the portal: exchanges the code of a link for a session, and shows what its scopes allow. */
import { html, render } from 'htm/preact';
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { PortalSessionDocument, PortalSettings } from '../../api/portal/portal-documents.ts';
import { call, endSession, failureFrom, keepToSession, SESSION_ENDED, sessionOf, startSession } from '../client/api.ts';
import { Advice, Loading, Problem } from '../client/components.ts';
import { announce } from '../client/dialog.ts';
import { MayWrite } from '../client/form-dialog.ts';
import { useAction, useWindowEvents } from '../client/hooks.ts';
import { KeyHeader } from '../client/key-fields.ts';
import { followLinks, usePlace } from '../client/router.ts';
import { Shell } from '../client/shell.ts';
import { accent } from './accent.ts';
import { KeysPage } from './keys-page.ts';
import { linkCode } from './link-code.ts';
import { UsagePage } from './usage-page.ts';

type PortalPage = readonly [
  name: string,
  title: string,
  page: ComponentType<{ session: PortalSessionDocument }>,
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
  none: 'No session is open in this browser.',
  ended: 'The session has ended, or another one was opened in this browser.',
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

interface PagesProps {
  readonly settings: PortalSettings;
  readonly session: PortalSessionDocument;
  readonly leave: (reason: 'ended' | 'left') => void;
}

function Pages({ settings, session, leave }: PagesProps) {
  const { title, support_url: supportUrl } = settings;
  const { customer, customer_name: name, suspended, return_url: returnUrl } = session;
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
    ${returnUrl && backLink(returnUrl)}
    ${supportUrl && supportLink(supportUrl)}
    <button type="button" onClick=${signOut}>Sign out</button>
  </div>`;
  return html`<${Shell} site=${title} brand=${html`<span class="brand">${title}</span>`} pages=${pages} current=${current}
    tools=${tools} heading=${heading}>
    ${
      suspended &&
      html`<p class="account-warning"><strong>This account is suspended.</strong> Its requests are refused, and its keys can be seen but not changed. Contact support.</p>`
    }
    ${Page && html`<${Page} session=${session} />`}
  <//>`;
}

followLinks();
const root = document.getElementById('app');
if (root) render(html`<${Advice.Provider} value=${ADVICE}><${App} /><//>`, root);
