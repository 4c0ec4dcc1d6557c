/** Serves the console's page and its files. They contain no data, so they are served without authentication. */
import { type RequestHandler, Router } from 'express';
import { sendProblem } from '../problems/document.ts';
import type { ConsoleFiles } from './build-files.ts';

/** One year, the most that RFC 9111 suggests. */
const IMMUTABLE = 'public, max-age=31536000, immutable';

/** The paths of the console, in Express's syntax. */
export const PAGE_PATHS = ['/console', '/console/assets/:hash/:name', '/console/*page'];

/** `files` must not change while the process runs. */
export function consolePages(files: () => Promise<ConsoleFiles>): Router {
  const router = Router({ caseSensitive: true, strict: true });

  router.get('/console/assets/:hash/:name', async (req, res) => {
    const { hash, assets } = await files();
    const { hash: requested, name } = req.params;
    const file = requested === hash ? assets.get(name) : undefined;
    if (file === undefined) {
      sendProblem(res, { code: 'not_found', detail: 'The console has no such file. Reload the page.' });
      return;
    }
    const coding = req.acceptsEncodings('br', 'gzip') || 'identity';
    res.setHeader('Cache-Control', IMMUTABLE);
    res.setHeader('Vary', 'Accept-Encoding');
    res.setHeader('ETag', `"${hash}.${coding}"`);
    if (req.fresh) {
      res.status(304).end();
      return;
    }
    res.setHeader('Content-Type', file.type);
    if (coding !== 'identity') res.setHeader('Content-Encoding', coding);
    const body = file[coding as 'br' | 'gzip' | 'identity'];
    res.setHeader('Content-Length', body.byteLength);
    res.end(body);
  });

  const page: RequestHandler = async (_req, res) => {
    const { page } = await files();
    res.type('html').send(page);
  };
  router.get(['/console', '/console/', '/console/*page'], page);
  router.all(['/console', '/console/*page'], (_req, res) => {
    const allow = 'GET, HEAD';
    sendProblem(res, { code: 'method_not_allowed', detail: `This path has ${allow}.`, headers: ['Allow', allow] });
  });
  return router;
}
