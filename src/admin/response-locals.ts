/** Facts about a request, kept in `res.locals`: the client's address, the path's template, and the actor. */
import type { RequestHandler, Response } from 'express';
import { peerAddress } from '../base/address-block.ts';

/** The authenticated client: the holder of the admin token, or a JWT's subject. */
export interface Actor {
  readonly name: 'token' | `jwt:${string}`;
  /** Whether the actor may make changes; reading is always allowed. */
  readonly mayWrite: boolean;
  /** When the JWT or session expires, as wall time; undefined for the admin token. */
  readonly expiresAtMs?: number;
}

/** Returns the actor that authentication set; undefined if the request was refused before or by authentication. */
export function knownActorOf(res: Response): Actor | undefined {
  return res.locals.actor as Actor | undefined;
}

/** Returns the actor of an authenticated request. */
export function actorOf(res: Response): Actor {
  return res.locals.actor as Actor;
}

/** Returns the client's address on the admin connection, as text. */
export function peerAddressOf(res: Response): string {
  return res.locals.peerAddress as string;
}

/** Returns the template of the request's path; `none` if the admin API has no such path. */
export function routeOf(res: Response): string {
  return (res.locals.route as string | undefined) ?? 'none';
}

/**
 * Notes the client's address, because a closed socket no longer has it, and the template of the path, so that logs and
 * metrics of refused requests have it. `paths`: in Express's syntax.
 */
export function noteRequest(paths: readonly string[]): RequestHandler {
  const routes = paths.map((path) => ({
    template: path.replace(/[:*](\w+)/g, '{$1}'),
    pattern: new RegExp(`^${path.replace(/:\w+/g, '[^/]+').replace(/\*\w+/g, '.*')}$`),
  }));
  return (req, res, next) => {
    res.locals.peerAddress = peerAddress(req.socket);
    res.locals.route = routes.find(({ pattern }) => pattern.test(req.path))?.template;
    next();
  };
}
