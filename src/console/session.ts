/**
 * Sessions of the console: a login exchanges the admin token or an admin JWT for a cookie, so that no page holds a secret.
 *
 *     POST   /console/session  {"token": "…"}   200 and the cookie, with a SessionDocument
 *     GET    /console/session                   200 with a SessionDocument, or 401: show the login page
 *     DELETE /console/session                   204, and the cookie is deleted
 *
 * A login can also be answered with 401 `unauthorized`, 403 `forbidden` (a JWT without either scope), 429 `too_many_failures` (with Retry-After), and
 * 503 `issuer_unavailable`.
 *
 * All calls that change something (`/admin/v1`, methods other than GET and HEAD) need `Content-Type: application/json`,
 * also without a body; the preview of a config file needs `application/yaml`. Use fetch's default mode: with
 * `mode: 'same-origin'` and `Referrer-Policy: no-referrer`, browsers send `Origin: null`.
 *
 * The cookie is a JWE under a key derived from the admin token. It needs no memory: it is valid on every instance that
 * has the same admin token, and on none once the token has changed. Without an admin token the instances share no secret.
 * Then the cookie is the JWT itself, which is verified again at each request.
 */
import { hkdfSync } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { EncryptJWT, jwtDecrypt } from 'jose';
import type { Clock } from '../base/clock.ts';

export const MAX_SESSION_MS = 8 * 3_600_000;

export const SESSION_COOKIE = 'tollgate_session';
/** Browsers ignore a cookie if its name and value together are longer (RFC 6265bis §5.7). */
const MAX_COOKIE_BYTES = 4096;

const ENCRYPTION = 'A256GCM';
const KEY_BYTES = 32;
const KEY_PURPOSE = 'tollgate console session';

export interface SessionDocument {
  /** As in the audit: `token`, or `jwt:` and the subject. */
  readonly actor: string;
  readonly scope: 'read' | 'write';
  /** `authorization`: a single sign-on proxy sends credentials with each request, and a logout has no effect. */
  readonly via: 'cookie' | 'authorization';
  /** ISO 8601; null: the admin token in an Authorization header does not expire. */
  readonly expires_at: string | null;
}

/** What a session allows and until when. */
export interface Session {
  /** The actor's name in log and audit. */
  readonly actor: string;
  readonly mayWrite: boolean;
  /** Wall time. */
  readonly expiresAtMs: number;
}

export interface SessionCookie {
  /** Without the prefix. */
  readonly name: string;
  readonly value: string;
  /** The scheme of the page that logged in. */
  readonly scheme: 'http' | 'https';
}

/** Encrypts sessions into cookie values. */
export class SessionSeal {
  readonly #key: Uint8Array;
  readonly #clock: Pick<Clock, 'nowMs'>;

  /** `token`: the admin token, not empty. */
  constructor(token: string, clock: Pick<Clock, 'nowMs'>) {
    this.#key = new Uint8Array(hkdfSync('sha256', token, '', KEY_PURPOSE, KEY_BYTES));
    this.#clock = clock;
  }

  seal({ actor, mayWrite, expiresAtMs }: Session): Promise<string> {
    return new EncryptJWT({ scope: mayWrite ? 'write' : 'read' })
      .setProtectedHeader({ alg: 'dir', enc: ENCRYPTION })
      .setSubject(actor)
      .setExpirationTime(Math.floor(expiresAtMs / 1000))
      .encrypt(this.#key);
  }

  /** Returns undefined if the session has expired, or the value was not sealed with this token. */
  async open(value: string): Promise<Session | undefined> {
    try {
      const { payload } = await jwtDecrypt(value, this.#key, {
        keyManagementAlgorithms: ['dir'],
        contentEncryptionAlgorithms: [ENCRYPTION],
        requiredClaims: ['sub', 'exp'],
        currentDate: new Date(this.#clock.nowMs()),
      });
      const { sub = '', exp = 0, scope } = payload;
      return { actor: sub, mayWrite: scope === 'write', expiresAtMs: exp * 1000 };
    } catch {
      return undefined;
    }
  }
}

/**
 * Returns the name of a cookie that no gateway on another port of the same host uses, because browsers send cookies to
 * all ports. Undefined if the address has no port.
 */
export function ownCookieName({ host = '' }: IncomingHttpHeaders): string | undefined {
  const [port] = /(?<=:)\d+$/.exec(host) ?? [];
  return port === undefined ? undefined : `${SESSION_COOKIE}_${port}`;
}

/** Returns the session cookie of a request: the one named after the port first, and that of https first. */
export function sessionCookieOf(headers: IncomingHttpHeaders): SessionCookie | undefined {
  const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim());
  for (const name of [ownCookieName(headers) ?? SESSION_COOKIE, SESSION_COOKIE]) {
    for (const scheme of ['https', 'http'] as const) {
      const start = `${nameFor(name, scheme)}=`;
      const value = pairs.find((pair) => pair.startsWith(start))?.slice(start.length);
      if (value !== undefined) return { name, value, scheme };
    }
  }
  return undefined;
}

/** Returns the Set-Cookie header that begins a session; undefined if browsers would ignore it because of its length. */
export function setCookie({ name, value, scheme }: SessionCookie, remainingMs: number): string | undefined {
  const fullName = nameFor(name, scheme);
  if (fullName.length + value.length > MAX_COOKIE_BYTES) return undefined;
  return `${fullName}=${value}; Max-Age=${Math.floor(remainingMs / 1000)}${attributesFor(scheme)}`;
}

/** Returns the Set-Cookie headers that end the session of a request, whatever the scheme of its login. */
export function deleteCookies(headers: IncomingHttpHeaders): string[] {
  const name = sessionCookieOf(headers)?.name ?? SESSION_COOKIE;
  return (['http', 'https'] as const).map((scheme) => `${nameFor(name, scheme)}=; Max-Age=0${attributesFor(scheme)}`);
}

/** Browsers accept the prefix only with Secure, `Path=/` and no Domain, so no other host can set the cookie. */
function nameFor(name: string, scheme: SessionCookie['scheme']): string {
  return scheme === 'https' ? `__Host-${name}` : name;
}

function attributesFor(scheme: SessionCookie['scheme']): string {
  return `; Path=/; HttpOnly; SameSite=Strict${scheme === 'https' ? '; Secure' : ''}`;
}

/**
 * Returns the scheme that the browser used. The gateway itself speaks http, so a TLS proxy is recognised by what the
 * browser states as the origin of its page, or else by the proxy's header. A wrong header harms only its sender.
 */
export function pageSchemeOf(headers: IncomingHttpHeaders): SessionCookie['scheme'] {
  const { origin } = headers;
  const stated = origin?.includes('://') ? origin : String(headers['x-forwarded-proto'] ?? '');
  return /^https\b/i.test(stated) ? 'https' : 'http';
}

/**
 * Returns whether a request comes from a page of the console, as far as the browser says. Browsers send Sec-Fetch-Site to
 * https and loopback addresses only, and Origin otherwise. `mustBeStated`: whether a request with neither is rejected.
 */
export function isFromOwnPage(
  headers: IncomingHttpHeaders,
  { scheme, mustBeStated }: { readonly scheme: SessionCookie['scheme']; readonly mustBeStated: boolean },
): boolean {
  const { origin, host } = headers;
  const site = headers['sec-fetch-site'];
  // `none`: the user typed the address. A page cannot cause that.
  if (site !== undefined) return site === 'same-origin' || (site === 'none' && !mustBeStated);
  if (origin !== undefined) return origin.toLowerCase() === `${scheme}://${host?.toLowerCase()}`;
  return !mustBeStated;
}
