/** Entry point of the portal's page. */
import type {
  PortalKeyDocument,
  PortalNewKeyDocument,
  PortalSessionDocument,
  PortalSettings,
} from '../../portal-api/portal-documents.ts';

/** What the page shows. */
export interface Shown {
  readonly settings: PortalSettings;
  readonly session?: PortalSessionDocument;
  readonly keys?: readonly PortalKeyDocument[];
  readonly created?: PortalNewKeyDocument;
}

document.querySelector('#app')?.append('API keys');
