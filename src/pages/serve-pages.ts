/** Serves the page of a site and its files. They contain no data, so they are served without authentication. */
import { type Request, type RequestHandler, type Response, Router } from 'express';
import { sendProblem } from '../http/problems/document.ts';
import { SECURITY_HEADERS } from '../http/problems/security-headers.ts';
import { type PageFile, type PageFiles, SITES, type Site } from './build-files.ts';

/** One year, the most that RFC 9111 suggests. */
const IMMUTABLE = 'public, max-age=31536000, immutable';

/** Sets the security headers of a listener with pages. Must be mounted first. */
export const protectResponses: RequestHandler = (_req, res, next) => {
  res.setHeader('Cache-Control', 'no-store');
  for (const [name, value] of SECURITY_HEADERS) res.setHeader(name, value);
  next();
};

/** Returns the paths of a site, in Express's syntax. */
export function pagePaths(site: Site): [root: string, asset: string, page: string] {
  const { path } = SITES[site];
  return [path, `${path}/assets/:hash/:name`, `${path}/*page`];
}

/** `files` must not change while the process runs. */
export function sitePages(site: Site, files: () => Promise<PageFiles>): Router {
  const [root, asset, below] = pagePaths(site);
  const router = Router({ caseSensitive: true, strict: true });

  router.get(asset, async (req, res) => {
    const { hash, assets } = await files();
    const { hash: requested, name = '' } = req.params as Readonly<Record<string, string>>;
    const file = requested === hash ? assets.get(name) : undefined;
    if (file === undefined) {
      sendProblem(res, { code: 'not_found', detail: `The ${site} has no such file. Reload the page.` });
      return;
    }
    res.setHeader('Cache-Control', IMMUTABLE);
    sendFile(req, res, file, hash);
  });

  const page: RequestHandler = async (req, res) => sendFile(req, res, (await files()).page);
  router.get([root, `${root}/`, below], page);
  router.all([root, below], (_req, res) => {
    const allow = 'GET, HEAD';
    sendProblem(res, { code: 'method_not_allowed', detail: `This path has ${allow}.`, headers: ['Allow', allow] });
  });
  return router;
}

/** `hash`: of its content, if it may be stored. */
function sendFile(req: Request, res: Response, file: PageFile, hash?: string): void {
  const coding = req.acceptsEncodings('br', 'gzip') || 'identity';
  res.setHeader('Vary', 'Accept-Encoding');
  if (hash !== undefined) res.setHeader('ETag', `"${hash}.${coding}"`);
  if (hash !== undefined && req.fresh) {
    res.status(304).end();
    return;
  }
  res.setHeader('Content-Type', file.type);
  if (coding !== 'identity') res.setHeader('Content-Encoding', coding);
  const body = file[coding as 'br' | 'gzip' | 'identity'];
  res.setHeader('Content-Length', body.byteLength);
  res.end(body);
}
