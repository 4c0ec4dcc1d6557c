import type { RequestHandler, Response } from 'express';
import { unmapped } from '../base/address-block.ts';

/** Stores the client's address, because a closed socket no longer has it. */
export function notePeerAddress(): RequestHandler {
  return (req, res, next) => {
    res.locals.peerAddress = unmapped(req.socket.remoteAddress ?? '');
    next();
  };
}

/** Returns the client's address on the admin connection, as text. */
export function peerAddressOf(res: Response): string {
  return res.locals.peerAddress as string;
}
