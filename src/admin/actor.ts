import type { Response } from 'express';

/** The authenticated client: the holder of the admin token, or a JWT's subject. */
export interface Actor {
  readonly name: 'token' | `jwt:${string}`;
  /** Whether the actor may make changes; reading is always allowed. */
  readonly mayWrite: boolean;
}

/** Returns the actor of an authenticated request. authorize.ts sets it before any handler runs. */
export function actorOf(res: Response): Actor {
  return res.locals.actor as Actor;
}

/** Returns the actor; undefined for a request that was refused before or by authentication. */
export function knownActorOf(res: Response): Actor | undefined {
  return res.locals.actor as Actor | undefined;
}
