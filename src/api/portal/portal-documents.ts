/** The documents of the portal: those of the admin API, without what concerns the operator alone. */
import { z } from 'zod';
import * as document from '../admin/responses.ts';

const TEXT = z.string().nullable();

export const PORTAL_SETTINGS = z.object({
  title: z.string().describe('Name of the API.'),
  logo_url: TEXT.meta({ description: 'Of an image, relative to the portal.', examples: ['/portal/logo'] }),
  home_url: TEXT.describe("The operator's own site, where a customer gets a link to the portal."),
  docs_url: TEXT.describe('The documentation of the API.'),
  support_url: TEXT.describe('Where customers get help.'),
  api_url: TEXT.describe('Base URL of the API.'),
  accent_color: TEXT.meta({ description: 'Of links and buttons.', examples: ['#0b5fff'] }),
  key_header: z.string().describe('The header in which clients send a key; in Authorization, after `Bearer`.'),
  max_keys: z.int().min(1).describe('A customer with this many keys in use cannot create another one here.'),
});
export type PortalSettings = z.output<typeof PORTAL_SETTINGS>;

export const PORTAL_SESSION = z.object({
  customer: document.CUSTOMER_ID,
  customer_name: TEXT,
  suspended: z.boolean().describe('A suspended customer may look, but change nothing.'),
  scopes: z.array(document.PORTAL_SCOPE),
  user: TEXT.describe('The label that the operator chose.'),
  return_url: TEXT.describe('Where the pages lead back to.'),
  expires_at: document.TIME,
});
export type PortalSessionDocument = z.output<typeof PORTAL_SESSION>;

export const PORTAL_USAGE = document.USAGE.extend({
  plan: z.string().describe('Name of the plan.'),
  limit_until: document.TIME.nullable().describe('When a temporary limit that applies now ends.'),
  limit_then: document.EFFECTIVE_LIMIT.describe('The limit from then on.'),
});

export const SCOPES = z.object({
  items: z.array(
    z.object({
      scope: z.string(),
      routes: z.array(
        z.object({
          methods: z.array(z.string()),
          path: z.string(),
          description: TEXT.describe('What its requests do, in the words of the operator.'),
        }),
      ),
    }),
  ),
});

export const OPENED_SESSION = PORTAL_SESSION.extend({
  binding: z
    .string()
    .describe('Send it as `X-Tollgate-Session-Binding` with the cookie, which is not accepted without it.'),
});

export const PORTAL_KEY = document.KEY.omit({ customer: true, customer_name: true });
export const PORTAL_KEY_PAGE = z.object({ items: z.array(PORTAL_KEY), next_cursor: document.NEXT_CURSOR });
export type PortalKeyDocument = z.output<typeof PORTAL_KEY>;

export const PORTAL_ROTATED_KEY = document.ROTATED_KEY.omit({ customer: true }).extend({
  example_url: TEXT.describe('What the key may read with GET; parameters of the path are in capitals.'),
});
export const PORTAL_NEW_KEY = PORTAL_ROTATED_KEY.omit({ replaces: true });
export type PortalNewKeyDocument = z.output<typeof PORTAL_NEW_KEY>;
