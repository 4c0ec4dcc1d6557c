import type { RequestHandler, Response } from 'express';

/** Remembers where a call comes from: once the connection is gone, nobody could tell any more. */
export function notePeerAddress(): RequestHandler {
  return (req, res, next) => {
    const address = req.socket.remoteAddress ?? '';
    // RFC 4291 §2.5.5.2: an IPv4 peer of a dual-stack socket.
    res.locals.peerAddress = address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
    next();
  };
}

/** The address at the other end of the admin connection, as text. */
export function peerAddressOf(res: Response): string {
  return res.locals.peerAddress as string;
}
