import type { RequestHandler, Response } from 'express';
import { unmapped } from '../address-block.ts';

/** Remembers where a call comes from: once the connection is gone, nobody could tell any more. */
export function notePeerAddress(): RequestHandler {
  return (req, res, next) => {
    res.locals.peerAddress = unmapped(req.socket.remoteAddress ?? '');
    next();
  };
}

/** The address at the other end of the admin connection, as text. */
export function peerAddressOf(res: Response): string {
  return res.locals.peerAddress as string;
}
