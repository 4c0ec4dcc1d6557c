/**
 * Sessions of the console: a login exchanges the admin token or an admin JWT for a session, so that no page holds a secret
 * that is valid elsewhere. See src/pages/bound-cookie.ts for its two parts, and src/control/admin/console-session.ts
 * for the routes.
 *
 * The cookie is a JWE under a key derived from the admin token and the binding. It needs no memory: it is valid on every
 * instance that has the same admin token, and on none once the token has changed. Without an admin token the instances
 * share no secret. Then the key is derived from the binding alone, and the JWE contains the JWT, which is verified again
 * at each request.
 */
import { hkdfSync } from 'node:crypto';
import { EncryptJWT, jwtDecrypt } from 'jose';
import type { Clock } from '../../base/clock.ts';
import type { CookieValue } from '../../pages/bound-cookie.ts';

export const MAX_SESSION_MS = 8 * 3_600_000;

const ENCRYPTION = 'A256GCM';
const KEY_BYTES = 32;
const KEY_PURPOSE = 'tollgate console session';

/** What a session allows and until when. */
export type Session =
  | {
      /** The actor's name in log and audit. */
      readonly actor: string;
      readonly mayWrite: boolean;
      /** Wall time. */
      readonly expiresAtMs: number;
    }
  /** Without an admin token: the JWT of the login, which the caller must verify. */
  | { readonly jwt: string; readonly expiresAtMs: number };

/** Encrypts sessions into cookie values. */
export class SessionSeal {
  readonly #token: string;
  readonly #clock: Pick<Clock, 'nowMs'>;

  /** `token`: the admin token; if empty, everyone who has the binding can make a session. */
  constructor(token: string, clock: Pick<Clock, 'nowMs'>) {
    this.#token = token;
    this.#clock = clock;
  }

  seal(session: Session, binding: string): Promise<string> {
    const encrypted =
      'jwt' in session
        ? new EncryptJWT({ jwt: session.jwt }).setProtectedHeader({ alg: 'dir', enc: ENCRYPTION, zip: 'DEF' })
        : new EncryptJWT({ scope: session.mayWrite ? 'write' : 'read' })
            .setProtectedHeader({ alg: 'dir', enc: ENCRYPTION })
            .setSubject(session.actor);
    return encrypted.setExpirationTime(Math.floor(session.expiresAtMs / 1000)).encrypt(this.#keyFor(binding));
  }

  /** Returns the session of the first cookie that was sealed with this token and binding, and has not expired. */
  async openFirst(cookies: readonly CookieValue[], binding: string): Promise<Session | undefined> {
    const key = this.#keyFor(binding);
    for (const { value } of cookies) {
      const session = await this.#open(value, key);
      if (session !== undefined) return session;
    }
    return undefined;
  }

  async #open(value: string, key: Uint8Array): Promise<Session | undefined> {
    try {
      const { payload } = await jwtDecrypt(value, key, {
        keyManagementAlgorithms: ['dir'],
        contentEncryptionAlgorithms: [ENCRYPTION],
        requiredClaims: ['exp'],
        currentDate: new Date(this.#clock.nowMs()),
      });
      const { sub, exp = 0, scope, jwt } = payload;
      const expiresAtMs = exp * 1000;
      // Without an admin token, the key proves nothing.
      if (this.#token === '') return typeof jwt === 'string' ? { jwt, expiresAtMs } : undefined;
      return sub === undefined ? undefined : { actor: sub, mayWrite: scope === 'write', expiresAtMs };
    } catch {
      return undefined;
    }
  }

  #keyFor(binding: string): Uint8Array {
    return new Uint8Array(hkdfSync('sha256', this.#token, binding, KEY_PURPOSE, KEY_BYTES));
  }
}
