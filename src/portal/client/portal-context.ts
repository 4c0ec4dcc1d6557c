/** What all parts of the portal's pages know: the session. The gateway enforces its scopes. */
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { PortalSessionDocument } from '../../portal-api/portal-documents.ts';

export const SessionContext = createContext<PortalSessionDocument | undefined>(undefined);

export type PortalScope = PortalSessionDocument['scopes'][number];

export function useMay(scope: PortalScope): boolean {
  const session = useContext(SessionContext);
  return (session?.scopes.includes(scope) ?? false) && !(scope === 'keys:write' && session?.suspended);
}
