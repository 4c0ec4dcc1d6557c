import type { AdminContext, AdminDependencies } from '../admin/dependencies.ts';
import type { PortalConfig } from '../config/config.ts';

/** Dependencies of the portal listener. It uses handlers of the admin API, but accepts none of its credentials. */
export interface PortalDependencies extends Omit<AdminDependencies, 'token' | 'jwt'> {
  readonly portal: PortalConfig;
}

/** What the routes use. */
export type PortalContext = PortalDependencies & Pick<AdminContext, 'recordChange'>;
