/** The session of the console, and what it allows. The gateway enforces the scope; pages only hide what it would refuse. */
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { SessionDocument } from '../../admin-api/responses.ts';

export const SessionContext = createContext<SessionDocument | undefined>(undefined);

export function useMayWrite(): boolean {
  return useContext(SessionContext)?.scope === 'write';
}
