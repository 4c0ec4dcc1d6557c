/**
 * Session cookies of which another port of the same host has no use. Browsers send the cookies of a host to all of its
 * ports, and accept cookies from all of them (RFC 6265 §8.5). So a session has two parts: the cookie, which no script can
 * read, and a random binding, which the page keeps in the storage of its origin and sends in a header. The server must
 * accept neither without the other.
 *
 * The cookie is named after the port, so that the sessions of several servers do not replace each other. A program on
 * another port can set a cookie of the same name with another path, which browsers send first. So every cookie of the
 * name may be the valid one.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Problem } from '../http/problems/document.ts';

type Scheme = 'http' | 'https';

/** In lower case, as Node.js has it. */
const BINDING_HEADER = 'x-tollgate-session-binding';
const BINDING_BYTES = 32;
const BINDING = /^[\w-]{43}$/;
/** Browsers ignore a cookie if its name and value together are longer (RFC 6265bis §5.7). */
const MAX_COOKIE_BYTES = 4096;

export interface CookieValue {
  readonly value: string;
  /** The scheme of the page that logged in. */
  readonly scheme: Scheme;
}

/** Returns a binding for a new session, in URL-safe characters. `randomBytes`: cryptographically secure. */
export function createBinding(randomBytes: (size: number) => Buffer): string {
  return randomBytes(BINDING_BYTES).toString('base64url');
}

/** Returns the binding that the page sent; undefined if there is none. */
export function bindingOf(headers: IncomingHttpHeaders): string | undefined {
  const binding = headers[BINDING_HEADER];
  return typeof binding === 'string' && BINDING.test(binding) ? binding : undefined;
}

/** The cookies of a site. `base`: the name without prefix and port; distinct for each site of a host. */
export class BoundCookie {
  readonly #base: string;
  readonly #scheme: Scheme | undefined;
  readonly #schemes: readonly Scheme[];

  /** `scheme`: that of all pages; without it, each login has that of its page. */
  constructor(base: string, scheme?: Scheme) {
    this.#base = base;
    this.#scheme = scheme;
    this.#schemes = scheme ? [scheme] : ['https', 'http'];
  }

  /** Returns every cookie of a request that may be the session's. */
  of(headers: IncomingHttpHeaders): CookieValue[] {
    const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim());
    return this.#schemes.flatMap((scheme) => {
      const start = `${this.#name(headers, scheme)}=`;
      return pairs.flatMap((pair) => (pair.startsWith(start) ? [{ value: pair.slice(start.length), scheme }] : []));
    });
  }

  schemeOf(headers: IncomingHttpHeaders): Scheme {
    return this.#scheme ?? pageSchemeOf(headers);
  }

  /** Returns the Set-Cookie header that begins a session; undefined if browsers would ignore it because of its length. */
  header(headers: IncomingHttpHeaders, value: string, remainingMs: number): string | undefined {
    const scheme = this.schemeOf(headers);
    const name = this.#name(headers, scheme);
    if (name.length + value.length > MAX_COOKIE_BYTES) return undefined;
    return `${name}=${value}; Max-Age=${Math.floor(remainingMs / 1000)}${attributesFor(scheme)}`;
  }

  /** Returns the Set-Cookie headers that delete the cookie, whatever the scheme of its login. */
  deletingHeaders(headers: IncomingHttpHeaders): string[] {
    return this.#schemes
      .toReversed()
      .map((scheme) => `${this.#name(headers, scheme)}=; Max-Age=0${attributesFor(scheme)}`);
  }

  /** Browsers accept the prefix only with Secure, `Path=/` and no Domain, so no other host can set the cookie. */
  #name({ host = '' }: IncomingHttpHeaders, scheme: Scheme): string {
    const [port] = /(?<=:)\d+$/.exec(host) ?? [];
    return `${scheme === 'https' ? '__Host-' : ''}${this.#base}${port === undefined ? '' : `_${port}`}`;
  }
}

function attributesFor(scheme: Scheme): string {
  return `; Path=/; HttpOnly; SameSite=Strict${scheme === 'https' ? '; Secure' : ''}`;
}

/**
 * Returns the scheme that the browser used. The gateway itself speaks http, so a TLS proxy is recognised by what the
 * browser states as the origin of its page, or else by the proxy's header. A wrong header harms only its sender.
 */
function pageSchemeOf(headers: IncomingHttpHeaders): Scheme {
  const { origin } = headers;
  const stated = origin?.includes('://') ? origin : String(headers['x-forwarded-proto'] ?? '');
  return /^https\b/i.test(stated) ? 'https' : 'http';
}

/**
 * Returns whether a request comes from a page of the same origin, as far as the browser says. Browsers send Sec-Fetch-Site to
 * https and loopback addresses only, and Origin otherwise. `mustBeStated`: whether a request with neither is rejected.
 */
export function isFromOwnPage(
  headers: IncomingHttpHeaders,
  { scheme, mustBeStated }: { readonly scheme: Scheme; readonly mustBeStated: boolean },
): boolean {
  const { origin, host } = headers;
  const site = headers['sec-fetch-site'];
  // `none`: the user typed the address. A page cannot cause that.
  if (site !== undefined) return site === 'same-origin' || (site === 'none' && !mustBeStated);
  if (origin !== undefined) return origin.toLowerCase() === `${scheme}://${host?.toLowerCase()}`;
  return !mustBeStated;
}

/**
 * Returns the cookies that no page of another origin can have caused to be sent; a refusal if none is left. `mustWrite`:
 * whether the request changes something. Browsers send a content type other than those of forms across origins only if
 * the server permits it, which no listener with such cookies does.
 */
export function ownCookies(
  headers: IncomingHttpHeaders,
  cookies: readonly CookieValue[],
  mustWrite: boolean,
): readonly CookieValue[] | { readonly reason: string; readonly problem: Problem } {
  const own = cookies.filter(({ scheme }) => isFromOwnPage(headers, { scheme, mustBeStated: mustWrite }));
  if (own.length === 0) return { reason: 'foreign_page', problem: FOREIGN_PAGE };
  if (mustWrite && !/^application\/(json|yaml)\s*(;|$)/i.test(headers['content-type'] ?? '')) {
    return { reason: 'content_type', problem: UNDECLARED_JSON };
  }
  return own;
}

const FOREIGN_PAGE: Problem = {
  code: 'forbidden',
  detail:
    'The session cookie is accepted from pages of this listener alone: Sec-Fetch-Site must be same-origin, or Origin that of this listener.',
};

const UNDECLARED_JSON: Problem = {
  code: 'unsupported_media_type',
  detail: 'Changes with the session cookie need Content-Type: application/json.',
};
