/** Facts about a request, kept in `res.locals`: the client's address, the path's template, and the actor. */
import type { IncomingMessage } from 'node:http';
import type { RequestHandler, Response } from 'express';
import { peerAddress } from '../../formats/address-block.ts';

/**
 * The authenticated client: a holder of the admin token, perhaps with the name that they gave, a JWT's subject, or a
 * customer in the portal.
 */
export interface Actor {
  readonly name: 'token' | `token:${string}` | `jwt:${string}` | `portal:${string}`;
  /** In the portal: who uses the session, as the operator named it. */
  readonly user?: string | undefined;
  /** Whether the actor may make changes; reading is always allowed. */
  readonly mayWrite: boolean;
  /** When the JWT or session expires, as wall time; undefined for the admin token. */
  readonly expiresAtMs?: number;
}

interface RequestFacts {
  /** Undefined if the request was refused before or by authentication. */
  actor?: Actor;
  /** As text: the peer's, or the one that a trusted proxy names. */
  readonly clientAddress: string;
  /** The template of the path; `none` if the admin API has no such path. */
  readonly route: string;
}

export function factsOf(res: Response): RequestFacts {
  return res.locals as RequestFacts;
}

/**
 * Notes the client's address, because a closed socket no longer has it, and the template of the path, so that logs and
 * metrics of refused requests have it. `paths`: in Express's syntax.
 */
export function noteRequest(
  paths: readonly string[],
  addressOf: (req: IncomingMessage) => string = ({ socket }) => peerAddress(socket),
): RequestHandler {
  const routes = paths.map((path) => ({
    template: path.replace(/[:*](\w+)/g, '{$1}'),
    pattern: new RegExp(`^${path.replace(/:\w+/g, '[^/]+').replace(/\*\w+/g, '.*')}$`),
  }));
  return (req, res, next) => {
    const route = routes.find(({ pattern }) => pattern.test(req.path))?.template ?? 'none';
    Object.assign(res.locals, { clientAddress: addressOf(req), route } satisfies RequestFacts);
    next();
  };
}
