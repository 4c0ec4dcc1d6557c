/** What the portal serves beside its pages: the logo, and the page at its bare address. Neither needs a session. */
import { createHash } from 'node:crypto';
import type { RequestHandler } from 'express';
import type { PortalConfig } from '../../config/config.ts';
import { SECURITY_HEADERS } from '../../http/problems/security-headers.ts';
import { Refusal } from '../frame/refusal.ts';
import type { PathHandlers } from '../frame/routes.ts';
import type { PortalContext } from './portal-context.ts';

export const LOGO_PATH = '/portal/logo';

/** An SVG that is opened as a document could run scripts, in the origin of the sessions. */
const LOGO_POLICY = `${SECURITY_HEADERS.get('Content-Security-Policy')}; sandbox`;

export function ownFiles({ portal, pageFiles }: Pick<PortalContext, 'portal' | 'pageFiles'>): PathHandlers {
  return { '/': { get: barePage(portal, pageFiles) }, [LOGO_PATH]: { get: logoHandler(portal) } };
}

function logoHandler({ logo }: PortalConfig): RequestHandler {
  if (!logo) return () => noLogo();
  const content = Buffer.from(logo.base64, 'base64');
  const tag = createHash('sha256').update(content).digest('base64url').slice(0, 16);
  return (req, res) => {
    res.setHeader('Content-Security-Policy', LOGO_POLICY);
    // Checked each time, because a reload changes it.
    res.setHeader('Cache-Control', 'no-cache');
    res.setHeader('ETag', `"${tag}"`);
    if (req.fresh) res.status(304).end();
    else res.setHeader('Content-Type', logo.type).end(content);
  };
}

function noLogo(): never {
  throw new Refusal('not_found', 'The portal has no logo.');
}

/**
 * The bare address, which people type or find in their history, is the first page of the portal. What programs without
 * JavaScript see of it leads to the operator's site too.
 */
function barePage({ title, homeUrl }: PortalConfig, pageFiles: PortalContext['pageFiles']): RequestHandler {
  const link = homeUrl && `<p><a href="${escaped(homeUrl)}">Go to ${escaped(new URL(homeUrl).host)}</a></p>`;
  const text = `<h1>${escaped(title)}</h1><p>To see your usage and API keys, open them from your account.</p>${link ?? ''}`;
  return async (_req, res) => {
    const { page } = await pageFiles();
    res.setHeader('Content-Type', page.type);
    res.end(
      Buffer.from(page.identity)
        .toString()
        .replace('<noscript>', () => `<noscript>${text}`),
    );
  };
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
