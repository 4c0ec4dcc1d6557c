/** Exchanges a token for a session. The token is neither stored nor kept in memory. */
import { html } from 'htm/preact';
import type { SessionDocument } from '../../api/admin/responses.ts';
import { startSession } from '../client/api.ts';
import { Field, Problem } from '../client/components.ts';
import { useAction } from '../client/hooks.ts';

export function LoginPage({ hasEnded, onLogin }: { hasEnded: boolean; onLogin: (session: SessionDocument) => void }) {
  const { isBusy, failure, run } = useAction(async (form) => {
    const data = new FormData(form);
    const [token, name] = ['token', 'name'].map((field) => String(data.get(field)).trim());
    const secret = { token, ...(name && { name }) };
    onLogin(await startSession<SessionDocument>(secret).finally(() => form?.reset()));
  });
  return html`<main class="login">
    <h1>Tollgate</h1>
    <form onSubmit=${run} aria-busy=${isBusy}>
      ${hasEnded && !failure && html`<p role="status">The session has ended. Log in to continue where you were.</p>`}
      <${Field} label="Admin token" hint="The value of admin.token, or a JWT with the scope tollgate:read or tollgate:write.">
        <input name="token" type="password" required autofocus autocomplete="off" spellcheck=${false} />
      <//>
      <${Field} label="Your name" hint="Optional, for the audit. A JWT has its own.">
        <input name="name" autocomplete="username" maxlength="64" />
      <//>
      ${failure && html`<${Problem} failure=${failure} />`}
      <button class="primary" disabled=${isBusy}>${isBusy ? 'Checking…' : 'Log in'}</button>
    </form>
  </main>`;
}
