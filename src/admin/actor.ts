import type { Response } from 'express';

/** Who was let in: the holder of the admin token, or a JWT's subject. */
export interface Actor {
  readonly name: 'token' | `jwt:${string}`;
  /** Whether calls that change something are allowed; reading always is. */
  readonly mayWrite: boolean;
}

/** Who makes this request; authorize.ts has put it there before any call is reached. */
export function actorOf(res: Response): Actor {
  return res.locals.actor as Actor;
}

/** The same for a request that may have been refused before it was authenticated. */
export function knownActorOf(res: Response): Actor | undefined {
  return res.locals.actor as Actor | undefined;
}
