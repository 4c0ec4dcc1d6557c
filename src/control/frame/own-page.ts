import type { RequestHandler } from 'express';
import { type BoundCookie, isFromOwnPage } from '../../pages/bound-cookie.ts';
import { Refusal } from './refusal.ts';

/** Other sites must not log a browser in or out. A program that states no origin is no browser. */
export function fromOwnPage(cookie: BoundCookie): RequestHandler {
  return ({ headers }, _res, next) => {
    const isOwn = isFromOwnPage(headers, { scheme: cookie.schemeOf(headers), mustBeStated: false });
    next(isOwn ? undefined : new Refusal('forbidden', 'Log in and out from a page of this listener itself.'));
  };
}
