import { hash, timingSafeEqual } from 'node:crypto';
import type { RequestHandler } from 'express';
import { answerProblem } from '../problems/answer.ts';

const CHALLENGE = ['WWW-Authenticate', 'Bearer realm="tollgate-admin"'];
/** The scheme is case-insensitive (RFC 9110 §11.1); what an operator may choose as a token is not ours to narrow. */
const BEARER = /^bearer +(.+)$/i;

/**
 * Lets pass who presents the admin token; everybody else gets 401, whatever the path. Digests of fixed length are
 * compared in constant time, so that the time taken says nothing about the token, its length included. Without a token
 * in the configuration nobody passes.
 */
export function requireToken(token: string | undefined): RequestHandler {
  if (!token) {
    return (_req, res) => {
      const detail = 'No admin token is configured: set admin.token in the configuration file.';
      answerProblem(res, { code: 'unauthorized', detail, headers: CHALLENGE });
    };
  }
  const expected = digest(token);
  return (req, res, next) => {
    const presented = BEARER.exec(req.headers.authorization ?? '')?.[1];
    if (presented !== undefined && timingSafeEqual(digest(presented), expected)) return next();
    const detail =
      presented === undefined
        ? 'Send the admin token as "Authorization: Bearer <token>".'
        : 'This is not the admin token.';
    answerProblem(res, { code: 'unauthorized', detail, headers: CHALLENGE });
  };
}

function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}
