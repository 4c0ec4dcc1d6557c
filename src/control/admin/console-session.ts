/** Routes that begin, show and end a session of the console. Mounted before authentication: a login has none. */
import type { RequestHandler } from 'express';
import { z } from 'zod';
import type { ConfigDocument, SessionDocument } from '../../api/admin/responses.ts';
import type { Disclosed } from '../../config/config.ts';
import { sendProblem } from '../../http/problems/document.ts';
import { createBinding } from '../../pages/bound-cookie.ts';
import { isoTime } from '../frame/document-of.ts';
import { fromOwnPage } from '../frame/own-page.ts';
import { jsonBody, parseBody } from '../frame/parse-request.ts';
import { Refusal } from '../frame/refusal.ts';
import { type Actor, factsOf } from '../frame/response-locals.ts';
import type { PathHandlers } from '../frame/routes.ts';
import type { AccessCounters, Gate } from './authorize.ts';
import { credentialsOf, SESSION_COOKIE, unauthorized } from './credentials.ts';
import type { AdminContext } from './dependencies.ts';
import { MAX_SESSION_MS } from './session-seal.ts';

/** A login is parsed before it is authenticated. */
const MAX_LOGIN_BYTES = 16 * 1024;

/** Of a person. It gets into log and audit. */
const PERSON = z
  .string()
  .trim()
  .regex(/^[\p{L}\p{N}][\p{L}\p{N} ._@'-]{0,63}$/u, "must be at most 64 letters, digits, spaces and . _ @ ' -");
const LOGIN = z.strictObject({ token: z.string().min(1), name: PERSON.optional() });

export function consoleSessionRoutes(
  context: AdminContext,
  gate: Gate,
  { logins }: Pick<AccessCounters, 'logins'>,
): PathHandlers {
  const { clock, randomBytes, recordChange, runningConfig } = context;

  const logIn: RequestHandler = async (req, res) => {
    const { token, name } = parseBody(LOGIN, req.body);
    const admitted = await gate.admitReader(req, res, { kind: 'bearer', token });
    if (admitted === undefined) {
      if (res.statusCode === 401) gate.auditFailedLogin(res);
      return;
    }
    // The token says nothing about who holds it; a JWT names its subject.
    const actor: Actor = admitted.name === 'token' && name ? { ...admitted, name: `token:${name}` } : admitted;
    factsOf(res).actor = actor;
    const nowMs = clock.nowMs();
    const expiresAtMs = Math.min(nowMs + MAX_SESSION_MS, actor.expiresAtMs ?? Number.POSITIVE_INFINITY);
    const binding = createBinding(randomBytes);
    const value = await gate.sealSession({ ...actor, expiresAtMs }, token, binding);
    const header = SESSION_COOKIE.header(req.headers, value, expiresAtMs - nowMs);
    if (header === undefined) {
      throw new Refusal('unprocessable', 'token: this JWT is too long for a cookie. Use one of fewer claims.');
    }
    if (logins.isDue(actor.name)) await recordChange(res, { action: 'session.create' });
    res.setHeader('Set-Cookie', header);
    res.json({
      ...sessionDocument({ ...actor, expiresAtMs }, 'cookie', runningConfig()),
      binding,
    } satisfies SessionDocument);
  };

  return {
    '/console/session': {
      post: [fromOwnPage(SESSION_COOKIE), jsonBody(MAX_LOGIN_BYTES), logIn],
      async get(req, res) {
        const credentials = credentialsOf(req.headers);
        // Pages ask this first. To have no session is no failed attempt.
        if (credentials.kind === 'none') {
          sendProblem(res, unauthorized('There is no session. Log in.'));
          return;
        }
        const actor = await gate.admitReader(req, res, credentials);
        if (actor)
          res.json(sessionDocument(actor, credentials.kind === 'cookie' ? 'cookie' : 'authorization', runningConfig()));
      },
      delete: [
        fromOwnPage(SESSION_COOKIE),
        ({ headers }, res) => {
          res.setHeader('Set-Cookie', SESSION_COOKIE.deletingHeaders(headers));
          res.status(204).end();
        },
      ],
    },
  };
}

function sessionDocument(
  { name, mayWrite, expiresAtMs }: Actor,
  via: SessionDocument['via'],
  config: Disclosed,
): SessionDocument {
  const expiresAt = isoTime(expiresAtMs) ?? null;
  // The file's schema guarantees this shape.
  const { console: installation = null, auth } = config as ConfigDocument;
  const scope = mayWrite ? 'write' : 'read';
  return { actor: name, scope, via, expires_at: expiresAt, key_header: auth?.key_headers?.[0] ?? '', installation };
}
