/** The session of the console, and what it allows. The gateway enforces the scope; pages only hide what it would refuse. */
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';

export interface Session {
  /** As in the audit: `token` or `jwt:<subject>`. */
  readonly actor: string;
  readonly scope: 'read' | 'write';
  /** `authorization`: a single sign-on proxy sends credentials with each request, so there is no logout. */
  readonly via: 'cookie' | 'authorization';
  readonly expires_at: string | null;
}

export const SessionContext = createContext<Session | undefined>(undefined);

export function useMayWrite(): boolean {
  return useContext(SessionContext)?.scope === 'write';
}
