import type { IncomingMessage } from 'node:http';
import type { PortalConfig } from '../../config/config.ts';
import type { AdminContext, AdminDependencies } from '../admin/dependencies.ts';

/** Dependencies of the portal listener. It uses handlers of the admin API, but accepts none of its credentials. */
export interface PortalDependencies extends Omit<AdminDependencies, 'token' | 'jwt'> {
  readonly portal: PortalConfig;
  /** The header in which clients send a key. */
  readonly keyHeader: string;
  /** Returns the address of a client behind the trusted proxies: the portal's clients come through a proxy with TLS. */
  clientAddress(req: IncomingMessage): string;
}

/** What the routes use. */
export type PortalContext = PortalDependencies & Pick<AdminContext, 'recordChange'>;
